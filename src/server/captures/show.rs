//! Captures as text.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::server::llm::capture::{Exchange, Piece};

/// A capture in one line.
pub(super) fn line(number: u64, exchange: &Exchange, out: &mut dyn Write) -> io::Result<()> {
    let status = exchange.response.as_ref().map_or("-".to_owned(), |response| response.status.to_string());
    let (sent, came) = (exchange.request.body.len(), exchange.body().len());
    let (time, model) = (time(exchange.request.at), model(&exchange.request.body));
    let (took, end) = (exchange.took_ms, &exchange.end);
    writeln!(out, "{number:>6}  {time}  {status:>3}  {model}  {sent} bytes out, {came} in, {took} ms: {end}")
}

/// All of a capture.
pub(super) fn show(number: u64, exchange: &Exchange, out: &mut dyn Write) -> io::Result<()> {
    let request = &exchange.request;
    writeln!(out, "Capture {number}, {}, {}\n", time(request.at), exchange.api)?;
    writeln!(out, "{} {}", request.method, request.url)?;
    headers(&request.headers, out)?;
    writeln!(out, "\n{}", pretty(&request.body))?;
    cut(request.cut, out)?;
    if let Some(response) = &exchange.response {
        writeln!(out, "\n{:>6} ms  {}", response.after_ms, response.status)?;
        headers(&response.headers, out)?;
        for piece in &response.pieces {
            writeln!(out, "\n{:>6} ms  {} bytes", piece.after_ms, piece.bytes().len())?;
            writeln!(out, "{}", text(piece))?;
        }
        cut(response.cut, out)?;
    }
    writeln!(out, "\n{:>6} ms  {}", exchange.took_ms, exchange.end)
}

/// The model that a request's body names.
pub(super) fn model(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body["model"].as_str().unwrap_or("?").to_owned()
}

fn headers(headers: &[(String, String)], out: &mut dyn Write) -> io::Result<()> {
    headers.iter().try_for_each(|(name, value)| writeln!(out, "{name}: {value}"))
}

fn cut(bytes: usize, out: &mut dyn Write) -> io::Result<()> {
    if bytes > 0 { writeln!(out, "({bytes} more bytes were not kept)") } else { Ok(()) }
}

fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<Value>(json).ok();
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| json.to_owned())
}

fn text(piece: &Piece) -> String {
    String::from_utf8_lossy(&piece.bytes()).trim_end().to_owned()
}

fn time(at: i64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(u64::try_from(at).unwrap_or_default()))
}
