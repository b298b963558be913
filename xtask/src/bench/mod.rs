//! `cargo xtask bench`: measurements of a release build, one a file, printed as one table.
//!
//! A measurement is a function from what is [`Built`] to rows; a new one is a file here and a line in
//! [`MEASUREMENTS`].

mod delta;
mod engine;
mod first_load;
mod load;
mod page;
mod process;
pub(crate) mod provider;
mod server;

use anyhow::{Context, Result, bail};

use crate::serve::{self, Built, Parts};
use crate::wasm::Mode;

/// One line of the table. `goal` is empty where there is none.
struct Row {
    name: String,
    value: String,
    goal: String,
}

struct Measurement {
    name: &'static str,
    parts: Parts,
    measure: fn(&Built) -> Result<Vec<Row>>,
}

const MEASUREMENTS: &[Measurement] = &[
    Measurement { name: "first_load", parts: Parts::All, measure: first_load::measure },
    Measurement { name: "page", parts: Parts::All, measure: page::measure },
    Measurement { name: "delta", parts: Parts::Server, measure: delta::measure },
    Measurement { name: "engine", parts: Parts::Server, measure: engine::measure },
    Measurement { name: "load", parts: Parts::Server, measure: load::measure },
];

/// Measures everything, or the one thing that is named.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    let names = || MEASUREMENTS.iter().map(|measurement| measurement.name).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&Measurement> = match arguments {
        [] => MEASUREMENTS.iter().collect(),
        [wanted] => MEASUREMENTS.iter().filter(|measurement| measurement.name == wanted).collect(),
        _ => bail!("usage: cargo xtask bench [NAME]"),
    };
    if chosen.is_empty() {
        bail!("there is no such measurement; there are: {}", names());
    }
    let parts = chosen.iter().map(|measurement| measurement.parts).max().unwrap_or(Parts::All);
    let built = serve::build(Mode::Release, parts)?;
    let mut tables = String::new();
    for Measurement { name, measure, .. } in chosen {
        let rows = measure(&built).with_context(|| format!("could not measure {name}"))?;
        tables += &format!("\n{name}\n{}", table(&rows));
    }
    print!("{tables}");
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let width = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0);
    let (names, values) = (width(|row| &row.name), width(|row| &row.value));
    let line = |row: &Row| {
        let goal = if row.goal.is_empty() { String::new() } else { format!("   goal: {}", row.goal) };
        format!("  {:<names$}  {:>values$}{goal}\n", row.name, row.value)
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row =
            |name: &str, value: &str, goal: &str| Row { name: name.into(), value: value.into(), goal: goal.into() };
        let rows = [row("js", "9 kB", ""), row("in all", "190 kB", "≤ 450 kB")];
        assert_eq!(table(&rows), "  js        9 kB\n  in all  190 kB   goal: ≤ 450 kB\n");
    }
}
