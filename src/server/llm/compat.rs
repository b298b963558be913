//! Where a model's server differs from its API, as data.
//!
//! Each dialect guesses these from the provider's name and address; what stands here beats the guess.

use serde::Deserialize;
use serde_json::Value;

/// Overrides of what a dialect would guess; none leaves the guess.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compat {
    // openai-completions.
    /// It takes `store: false`.
    pub supports_store: Option<bool>,
    /// Instructions of a reasoning model have the role `developer`.
    pub supports_developer_role: Option<bool>,
    /// It takes `reasoning_effort`.
    pub supports_reasoning_effort: Option<bool>,
    /// It sends usage when asked by `stream_options`.
    pub supports_usage_in_streaming: Option<bool>,
    /// It says how an answer ended.
    pub supports_finish_reason: Option<bool>,
    pub max_tokens_field: Option<MaxTokensField>,
    /// A tool's result must repeat the tool's name.
    pub requires_tool_result_name: Option<bool>,
    /// A user's message must not follow a tool's result.
    pub requires_assistant_after_tool_result: Option<bool>,
    /// Reasoning goes back as text.
    pub requires_thinking_as_text: Option<bool>,
    /// Every message of a reasoning model has `reasoning_content`, if only an empty one.
    pub requires_reasoning_content_on_assistant_messages: Option<bool>,
    pub thinking_format: Option<ThinkingFormat>,
    /// OpenRouter's wishes about upstreams, as its `provider` field has them.
    pub open_router_routing: Option<Value>,
    /// z.ai streams tool arguments only when asked.
    pub zai_tool_stream: Option<bool>,
    /// Tools have `strict`.
    pub supports_strict_mode: Option<bool>,
    /// Anthropic's marks for the cache are passed on.
    pub cache_control_format: Option<CacheControlFormat>,
    pub session_affinity_format: Option<SessionAffinityFormat>,

    // Both.
    /// Headers that bring a chat's requests to the same machine.
    pub send_session_affinity_headers: Option<bool>,
    /// The cache may be asked to keep a request for long.
    pub supports_long_cache_retention: Option<bool>,

    // anthropic-messages.
    /// Tools have `eager_input_streaming`; else a beta header asks for it.
    pub supports_eager_tool_input_streaming: Option<bool>,
    /// A tool may carry the cache's mark.
    pub supports_cache_control_on_tools: Option<bool>,
    pub supports_temperature: Option<bool>,
    /// Thinking without a signature goes back as thinking.
    pub allow_empty_signature: Option<bool>,
    /// Tools have `strict`.
    pub supports_strict_tools: Option<bool>,
    /// The model decides how much it thinks, within an effort; it takes no budget.
    pub force_adaptive_thinking: Option<bool>,
}

/// The field that bounds an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    MaxTokens,
    MaxCompletionTokens,
}

/// How a server is told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingFormat {
    Openai,
    Openrouter,
    Deepseek,
    Zai,
    Together,
    AntLing,
    Qwen,
    QwenChatTemplate,
    StringThinking,
}

/// Whose marks for the cache a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheControlFormat {
    Anthropic,
}

/// Which headers carry a chat's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionAffinityFormat {
    Openai,
    OpenaiNosession,
    Openrouter,
}
