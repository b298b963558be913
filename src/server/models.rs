//! The list of models for people: what can be chosen, what it costs and what is missing for it.

use super::choice::Choice;
use super::clock::now_ms;
use super::config::{self, ConfigError, Offer};
use super::llm::catalog::Model;
use super::llm::known::{Catalog, Keys};
use super::llm::local::{Server, grouped};
use super::llm::update::Source;

/// Prints the models that are known, or those of the servers on this machine.
///
/// # Errors
/// Names the variable that cannot be used.
pub async fn list(local: bool) -> Result<(), ConfigError> {
    let offer = config::offer()?;
    let text = if local { on_servers(&servers(&offer.choice)).await } else { known(offer).await };
    print!("{text}");
    Ok(())
}

/// All that is known, what OpenRouter has today included.
async fn known(offer: Offer) -> String {
    let Offer { data, choice } = offer;
    let mut catalog = choice.catalog;
    if let Some(source) = Source::of(&catalog, &choice.keys, &data) {
        match source.refresh(now_ms()).await {
            Ok(_) => catalog = Catalog::load(&data),
            Err(error) => tracing::warn!(error, "OpenRouter's list of models could not be read; the one before stays"),
        }
    }
    table(&catalog.models, &choice.keys)
}

/// The usual servers, and the one by hand.
fn servers(choice: &Choice) -> Vec<Server> {
    let by_hand = choice.base_url.clone().map(|base_url| Server { base_url, key: choice.key.clone() });
    let usual = Server::usual();
    let is_new = |server: &Server| usual.iter().all(|known| known.base_url != server.base_url.trim_end_matches('/'));
    by_hand.into_iter().filter(is_new).chain(usual.clone()).collect()
}

/// What the servers that answer have.
pub async fn on_servers(servers: &[Server]) -> String {
    let mut text = String::new();
    for server in servers {
        match server.models().await {
            Ok(models) => {
                text += &format!("LEARNHARNESS_BASE_URL={}\n", server.base_url);
                for model in models {
                    text += &format!("  LEARNHARNESS_MODEL={} ({}): {}\n", model.id, model.provider, reads(&model));
                }
            }
            Err(words) => tracing::debug!(words, server = server.base_url, "no server"),
        }
    }
    if text.is_empty() {
        let asked: Vec<&str> = servers.iter().map(|server| server.base_url.as_str()).collect();
        text = format!("No server answers at {}.\n", asked.join(", "));
    }
    text
}

fn reads(model: &Model) -> String {
    match (model.context_window, model.note.as_str()) {
        (0, "") => "it does not say how much it reads".to_owned(),
        (tokens, "") => format!("reads {} tokens", grouped(tokens)),
        (_, note) => note.to_owned(),
    }
}

/// A line a model: its name, tokens, USD a million tokens, and whether its provider's key is there.
#[must_use]
pub fn table(models: &[Model], keys: &Keys) -> String {
    let width = models.iter().map(|model| model.full_name().len()).max().unwrap_or(0);
    let mut text = format!("{:<width$}  {:>10}  {:>9}  {:>9}  key\n", "model", "context", "in $/M", "out $/M");
    for model in models {
        let key = match keys.contains_key(&model.provider) {
            true => "yes".to_owned(),
            false => format!("no, set {}", model.key_variable),
        };
        let (context, rates) = (grouped(model.context_window), model.prices.rates);
        let (input, output) = (rates.input, rates.output);
        text += &format!("{:<width$}  {context:>10}  {input:>9}  {output:>9}  {key}\n", model.full_name());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::catalog::Key;

    #[test]
    fn the_table_says_what_a_model_costs_and_whether_its_key_is_there() {
        let models: Vec<Model> =
            ["openrouter", "zai"].map(|provider| Catalog::built_in().first_of(provider).cloned().unwrap()).to_vec();
        let keys = Keys::from([("openrouter".to_owned(), Key("sk-secret".to_owned()))]);
        let expected = "\
model                             context     in $/M    out $/M  key
openrouter/z-ai/glm-5.3-flash   1,048,576      0.075       0.25  yes
zai/glm-5.3-flash               1,000,000      0.075       0.25  no, set ZAI_API_KEY
";
        assert_eq!(table(&models, &keys), expected);
    }
}
