//! Where a lesson is: probing, planning or teaching.

use super::next::ends_run;
use crate::app::native::Marker;
use crate::app::native::message::{Message, Stored};
use crate::app::native::plan::PROBE_DONE;
use crate::app::native::view::Phase;

/// `Probe` until a `probe_done` call has a clean result, `Plan` until a plan is accepted, then `Teach` for good: a later
/// plan re-opens the verdict, not the phase.
#[must_use]
pub fn phase(record: &[Stored]) -> Phase {
    let mut phase = Phase::Probe;
    for stored in record {
        match &stored.message {
            Message::ToolResult(result) if ends_run(result) && result.tool_name == PROBE_DONE => phase = Phase::Plan,
            Message::Custom(custom) => {
                if let Some(Marker::PlanVerdict { accepted: true, .. }) = Marker::read(custom) {
                    return Phase::Teach;
                }
            }
            Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) => {}
        }
    }
    phase
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::record;

    #[test]
    fn a_lesson_goes_from_probe_to_plan_to_teach() {
        let lines = [
            ("user hi", Phase::Probe),
            ("teacher[toolUse] probe_done#p {}", Phase::Probe),
            ("result! probe_done#p No goal.", Phase::Probe),
            ("teacher[toolUse] probe_done#r {}", Phase::Probe),
            ("result probe_done#r Done.", Phase::Plan),
            ("marker probe-handoff {\"assessment\":{}}", Phase::Plan),
            ("teacher[toolUse] plan_init#i {}", Phase::Plan),
            ("result plan_init#i Shown.", Phase::Plan),
            ("marker plan-verdict {\"accepted\":false}", Phase::Plan),
            ("marker plan-verdict {\"accepted\":true}", Phase::Teach),
            ("teacher[toolUse] plan_init#j {}", Phase::Teach),
            ("result plan_init#j Shown.", Phase::Teach),
            ("marker plan-verdict {\"accepted\":false}", Phase::Teach),
        ];
        let mut text = String::new();
        for (line, expected) in lines {
            text.push_str(line);
            text.push('\n');
            assert_eq!(phase(&record(&text)), expected, "after {line}");
        }
    }
}
