//! What `cargo xtask bench load` puts around a server: the provider and the readers, each a process of its own.
//!
//! `load provider` answers by the address, see [`provider`]. `load seed DIR` fills a data folder with long records. The others
//! are scenes of [`scenes`]: `load runs|idle|lagged|open|wire|records SERVER …`. A scene prints a line of JSON for each thing that it
//! has found, and goes on after each when a line comes back, so that whoever started it can look at the processes in between.

mod provider;
mod reader;
mod scenes;
mod seed;

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match words.as_slice() {
            ["provider"] => provider::serve().await,
            ["seed", folder] => seed::seed(folder.as_ref()).await,
            ["runs", server, runs, deltas] => scenes::runs(server.parse()?, runs.parse()?, deltas.parse()?).await,
            ["idle", server, chats, readers] => scenes::idle(server.parse()?, chats.parse()?, readers.parse()?).await,
            ["lagged", server, slow] => scenes::lagged(server.parse()?, slow.parse()?).await,
            ["open", server, deltas] => scenes::open(server.parse()?, deltas.parse()?).await,
            ["wire", server, provider, path] => scenes::wire(server.parse()?, provider.parse()?, path).await,
            ["records", server] => scenes::records(server.parse()?).await,
            _ => Err("usage: load provider | seed DIR | runs|idle|lagged|open|wire|records SERVER …".into()),
        }
    })
}

/// Says what was found, and waits for leave to go on.
fn say(found: &Value) -> Result<(), Failure> {
    println!("{found}");
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Microseconds of the clock that all processes of a machine share.
#[expect(clippy::disallowed_methods, reason = "a measurement across processes needs the machine's clock")]
fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
