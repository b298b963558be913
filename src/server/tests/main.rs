//! The one integration binary. A new test goes into the file of the story it tells, support code into `support`:
//!
//! - `run_loop`: the agent loop alone, with a scripted model and tools: order of events, batches, steering, stopping.
//! - `record`: what an input may and may not do to the record, over HTTP.
//! - `wire`: what readers see: chats, streams, attaching, stopping.
//! - `deletion`: chats that are deleted and brought back.
//! - `calls`: calls whose ids come again in later answers.
//! - `empty`: answers with nothing in them, from the provider's wire to the record.
//! - `recovery`: what a new process makes of what the one before left.
//! - `crash`: the real server, killed at any moment while learners learn.
//! - `windows`: the same for a process that died between any two writes of a run.
//! - `killed`: a lesson whose process is killed at any event, again and again.
//! - `endings`: how the real binary ends, and which data it refuses.
//! - `durability`: what the record survives: full disks, damaged rows, torn logs.
//! - `steers`: results of jobs on their way into a lesson.
//! - `guard`: who is let in.
//! - `reference`: dialects and loop against the cases of the reference packages.
//! - `faults`: the dialects against faults that were reported in public.
//! - `cases`: both of these over the cases of any folders.
//! - `replay`: what a record becomes in a request.
//! - `repair`: what any record becomes in a request, however it was cut.
//! - `signatures`: thoughts on their way back to the model that had them.
//! - `anthropic`: servers that speak Anthropic's API in their own way.
//! - `models`: which model is used, what it is asked, what it costs; lists and local servers.
//! - `transport`: our own limits: failures, silence, stops, keys.
//! - `captures`: what is kept of the wire, and what can be done with it.
//! - `tidy`: the house rules of the source tree.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the whole binary is tests")]

mod anthropic;
mod calls;
mod captures;
mod cases;
mod crash;
mod deletion;
mod durability;
mod empty;
mod endings;
mod faults;
mod guard;
mod killed;
mod models;
mod record;
mod recovery;
mod reference;
mod repair;
mod replay;
mod run_loop;
mod signatures;
mod steers;
mod support;
mod tidy;
mod transport;
mod windows;
mod wire;
