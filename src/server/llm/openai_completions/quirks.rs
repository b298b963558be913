//! Where a server differs from OpenAI's own, by the provider's name and address; what the model's data says wins.

use crate::server::llm::catalog::Model;
use crate::server::llm::compat::{CacheControlFormat, MaxTokensField, SessionAffinityFormat, ThinkingFormat};
use crate::server::llm::ids::IdRule;

/// A model's differences, decided.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quirks {
    pub(super) store: bool,
    /// It passes requests on to upstreams, and can be told which.
    pub(super) routing: bool,
    pub(super) developer_role: bool,
    pub(super) reasoning_effort: bool,
    pub(super) usage_in_streaming: bool,
    pub(super) finish_reason: bool,
    pub(super) max_tokens_field: MaxTokensField,
    pub(super) tool_result_name: bool,
    pub(super) assistant_after_tool_result: bool,
    pub(super) thinking_as_text: bool,
    pub(super) reasoning_content: bool,
    pub(super) thinking_format: ThinkingFormat,
    pub(super) tool_stream: bool,
    pub(super) strict_mode: bool,
    /// A request without tools says so when its messages have calls: proxies want that, and OpenAI itself refuses it.
    pub(super) empty_tools: bool,
    pub(super) cache_control: Option<CacheControlFormat>,
    pub(super) cache_key: bool,
    pub(super) long_cache: bool,
    pub(super) affinity: Option<SessionAffinityFormat>,
    pub(super) ids: IdRule,
}

impl Quirks {
    pub(super) fn of(model: &Model) -> Self {
        let compat = &model.compat;
        let host = Host::of(model);
        let is = |hosts: &[Host]| hosts.contains(&host);
        let openrouter = host == Host::OpenRouter;
        let named_after = |maker: &str| openrouter && model.id.starts_with(maker);
        let bare = is(&[Host::Together, Host::CloudflareGateway, Host::Nvidia, Host::AntLing]);
        let max_tokens = bare || is(&[Host::Chutes, Host::DeepSeek, Host::Moonshot, Host::Zai]);
        let anthropic_on_openrouter = model.provider == "openrouter" && named_after("anthropic/");
        let affinity = compat.session_affinity_format.unwrap_or(if openrouter {
            SessionAffinityFormat::Openrouter
        } else {
            SessionAffinityFormat::Openai
        });
        Self {
            routing: openrouter,
            store: compat.supports_store.unwrap_or(host.is_standard()),
            developer_role: compat.supports_developer_role.unwrap_or(if openrouter {
                named_after("anthropic/") || named_after("openai/")
            } else {
                host.is_standard()
            }),
            reasoning_effort: compat
                .supports_reasoning_effort
                .unwrap_or(!bare && !is(&[Host::Xai, Host::Zai, Host::Moonshot])),
            usage_in_streaming: compat.supports_usage_in_streaming.unwrap_or(true),
            finish_reason: compat.supports_finish_reason.unwrap_or(true),
            max_tokens_field: compat.max_tokens_field.unwrap_or(if max_tokens {
                MaxTokensField::MaxTokens
            } else {
                MaxTokensField::MaxCompletionTokens
            }),
            tool_result_name: compat.requires_tool_result_name.unwrap_or(false),
            assistant_after_tool_result: compat.requires_assistant_after_tool_result.unwrap_or(false),
            thinking_as_text: compat.requires_thinking_as_text.unwrap_or(false),
            reasoning_content: compat
                .requires_reasoning_content_on_assistant_messages
                .unwrap_or(host == Host::DeepSeek),
            thinking_format: compat.thinking_format.unwrap_or(host.thinking_format()),
            tool_stream: compat.zai_tool_stream.unwrap_or(false),
            strict_mode: compat.supports_strict_mode.unwrap_or(!is(&[
                Host::Moonshot,
                Host::Together,
                Host::CloudflareGateway,
                Host::Nvidia,
            ])),
            empty_tools: host != Host::OpenAi,
            cache_control: compat
                .cache_control_format
                .or(anthropic_on_openrouter.then_some(CacheControlFormat::Anthropic)),
            cache_key: host == Host::OpenAi,
            long_cache: compat.supports_long_cache_retention.unwrap_or(!bare && host != Host::CloudflareWorkers),
            affinity: compat.send_session_affinity_headers.unwrap_or(false).then_some(affinity),
            ids: match host {
                Host::OpenAi => IdRule::Short,
                Host::Mistral => IdRule::Nine,
                _ => IdRule::Own,
            },
        }
    }
}

/// The servers that are known to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    OpenAi,
    OpenRouter,
    DeepSeek,
    Zai,
    Moonshot,
    Together,
    Nvidia,
    AntLing,
    Cerebras,
    Chutes,
    Xai,
    OpenCode,
    CloudflareWorkers,
    CloudflareGateway,
    Mistral,
    Other,
}

/// Each with the names of its providers and parts of its addresses.
const HOSTS: &[(Host, &[&str], &[&str])] = &[
    (Host::OpenAi, &["openai"], &["api.openai.com"]),
    (Host::OpenRouter, &["openrouter"], &["openrouter.ai"]),
    (Host::DeepSeek, &["deepseek"], &["deepseek.com"]),
    (Host::Zai, &["zai", "zai-coding-cn"], &["api.z.ai", "open.bigmodel.cn"]),
    (Host::Moonshot, &["moonshotai", "moonshotai-cn"], &["api.moonshot."]),
    (Host::Together, &["together"], &["api.together.ai", "api.together.xyz"]),
    (Host::Nvidia, &["nvidia"], &["integrate.api.nvidia.com"]),
    (Host::AntLing, &["ant-ling"], &["api.ant-ling.com"]),
    (Host::Cerebras, &["cerebras"], &["cerebras.ai"]),
    (Host::Chutes, &["chutes"], &["chutes.ai"]),
    (Host::Xai, &["xai"], &["api.x.ai"]),
    (Host::OpenCode, &["opencode"], &["opencode.ai"]),
    (Host::CloudflareWorkers, &["cloudflare-workers-ai"], &["api.cloudflare.com"]),
    (Host::CloudflareGateway, &["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]),
    (Host::Mistral, &["mistral"], &["api.mistral.ai"]),
];

impl Host {
    fn of(model: &Model) -> Self {
        let address = model.base_url.to_lowercase();
        let known = HOSTS.iter().find(|(_, names, parts)| {
            names.contains(&model.provider.as_str()) || parts.iter().any(|part| address.contains(part))
        });
        known.map_or(Self::Other, |(host, ..)| *host)
    }

    /// True when it takes what OpenAI's own server takes.
    fn is_standard(self) -> bool {
        match self {
            Self::OpenAi | Self::OpenRouter | Self::Other => true,
            Self::DeepSeek
            | Self::Zai
            | Self::Moonshot
            | Self::Together
            | Self::Nvidia
            | Self::AntLing
            | Self::Cerebras
            | Self::Chutes
            | Self::Xai
            | Self::OpenCode
            | Self::CloudflareWorkers
            | Self::CloudflareGateway
            | Self::Mistral => false,
        }
    }

    fn thinking_format(self) -> ThinkingFormat {
        match self {
            Self::OpenRouter => ThinkingFormat::Openrouter,
            Self::DeepSeek => ThinkingFormat::Deepseek,
            Self::Zai => ThinkingFormat::Zai,
            Self::Together => ThinkingFormat::Together,
            Self::AntLing => ThinkingFormat::AntLing,
            Self::OpenAi
            | Self::Moonshot
            | Self::Nvidia
            | Self::Cerebras
            | Self::Chutes
            | Self::Xai
            | Self::OpenCode
            | Self::CloudflareWorkers
            | Self::CloudflareGateway
            | Self::Mistral
            | Self::Other => ThinkingFormat::Openai,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::compat::Compat;

    fn of(provider: &str, base_url: &str, compat: Compat) -> Quirks {
        let (provider, base_url) = (provider.to_owned(), base_url.to_owned());
        Quirks::of(&Model { id: "m".to_owned(), provider, base_url, compat, ..Model::default() })
    }

    #[test]
    fn a_server_is_known_by_its_name_or_its_address() {
        for (provider, address) in [("deepseek", "http://proxy"), ("custom", "https://api.DeepSeek.com")] {
            let quirks = of(provider, address, Compat::default());
            assert_eq!(quirks.max_tokens_field, MaxTokensField::MaxTokens);
            assert_eq!(quirks.thinking_format, ThinkingFormat::Deepseek);
            assert!(!quirks.store && !quirks.developer_role && quirks.reasoning_content && quirks.strict_mode);
        }
    }

    #[test]
    fn what_the_data_says_beats_the_guess() {
        let compat: Compat = serde_json::from_str(
            r#"{"supportsStore": true, "maxTokensField": "max_completion_tokens", "thinkingFormat": "string-thinking",
                "requiresReasoningContentOnAssistantMessages": false, "sendSessionAffinityHeaders": true,
                "sessionAffinityFormat": "openai-nosession"}"#,
        )
        .unwrap();
        let quirks = of("deepseek", "", compat);
        assert!(quirks.store && !quirks.reasoning_content);
        assert_eq!(quirks.max_tokens_field, MaxTokensField::MaxCompletionTokens);
        assert_eq!(quirks.thinking_format, ThinkingFormat::StringThinking);
        assert_eq!(quirks.affinity, Some(SessionAffinityFormat::OpenaiNosession));
    }

    #[test]
    fn only_some_makers_take_the_developer_role_through_openrouter() {
        let of = |id: &str| {
            let base_url = "https://openrouter.ai/api/v1".to_owned();
            let model = Model { id: id.into(), provider: "openrouter".into(), base_url, ..Model::default() };
            let quirks = Quirks::of(&model);
            (quirks.developer_role, quirks.cache_control.is_some())
        };
        assert_eq!([of("anthropic/a"), of("openai/o"), of("z-ai/g")], [(true, true), (true, false), (false, false)]);
    }
}
