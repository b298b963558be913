//! The rows of a transcript on screen: data only, with keys that stay the same while a run goes on.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use crate::app::native::Seq;
use crate::app::native::marker::{Assessment, NoticeKind};
use crate::app::native::plan::{BlockStatus, Plan};
use crate::app::native::question::{Graded, Question};

/// One row: what one side said or did until the other's turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The seq of its first message, or the one that this will get: stable from the first delta on.
    pub key: Seq,
    pub who: Who,
    pub parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Learner,
    Teacher,
    /// A marker's card, which neither of them said.
    Lesson,
}

/// One piece of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub key: PartKey,
    pub body: Body,
}

/// Which message a part is made of, and which of its pieces; unique in a transcript, stable while it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartKey {
    pub seq: Seq,
    pub piece: Piece,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// The line between two steps.
    Separator,
    /// The content block at this index; 0 for a message that is shown whole.
    Block(u32),
    /// How an answer ended.
    End,
}

/// What a part shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The learner's words, and how many images came with them.
    Said {
        text: String,
        images: usize,
    },
    /// The teacher's words, in Markdown; they go on while `open`.
    Prose {
        text: String,
        open: bool,
    },
    /// What the model thought; it goes on while `open`.
    Thinking {
        text: String,
        open: bool,
    },
    Question(Box<QuestionCard>),
    Plan(Box<PlanCard>),
    Tool(Box<ToolLine>),
    /// Between two steps of one unit.
    Separator,
    /// A block of the plan was started or finished; the title as the plan has it.
    Progress {
        block_id: String,
        title: Option<String>,
        status: BlockStatus,
    },
    /// The learner stopped the answer. Like one that failed it can be asked for again.
    Stopped {
        words: String,
        can_retry: bool,
    },
    /// The answer failed. It can be asked for again only while nothing has come after it.
    Failed {
        words: String,
        can_retry: bool,
    },
    Notice(Notice),
    Verdict {
        accepted: bool,
        note: Option<String>,
    },
    Handoff(Assessment),
    Steer(Steer),
    /// A custom message that is not ours, shown as the text that it carries.
    Note {
        text: String,
    },
}

/// A question to the learner.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionCard {
    pub tool_call_id: String,
    pub question: Question,
    /// It was asked before the handoff: what was right is not told, for a probe does not teach.
    pub of_probe: bool,
    pub state: QuestionState,
    /// The learner asked for the hint.
    pub hinted: bool,
    /// Why the learner thinks that the question is wrong.
    pub objection: Option<String>,
    /// The teacher's word on an open short answer.
    pub judgement: Option<Judgement>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QuestionState {
    /// It waits for the learner.
    Pending,
    Answered(Graded),
    /// Answered in a form that we do not grade; the result's text.
    Told(String),
    /// No answer came, and none can come any more.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: String,
    pub reason: String,
}

/// A plan that the teacher proposed.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanCard {
    pub tool_call_id: String,
    pub plan: Plan,
    pub state: PlanState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanState {
    Waiting,
    Accepted,
    SentBack,
    /// A later plan took its place.
    Superseded,
}

/// A tool call in one line, to open.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolLine {
    pub tool_call_id: String,
    pub name: String,
    /// The tool's name for people.
    pub label: String,
    pub args: Value,
    pub state: ToolState,
    /// The result's text, or what there is of it.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// Its arguments are still streaming.
    Writing,
    Running,
    Done,
    Failed,
    /// It never ran, or nobody knows how it ended.
    Cut,
}

/// Something that the learner should know about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    TurnCap,
    Storage,
    Loop,
    CallAsText,
    /// The model's server has read only some of the tokens that it was sent.
    CutPrompt {
        counted: u64,
        estimated: u64,
    },
    /// There was nothing in the answer, and the model is asked once more.
    EmptyAnswer,
    /// The answer is as long as the model may write.
    Length,
    /// The server went down in mid-answer; the teacher goes on below.
    Interrupted,
    /// The server went down twice during one answer; the learner may ask for it again.
    CutTwice,
}

/// A job's result on its way into the lesson.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    pub job_id: String,
    pub kind: String,
    pub outcome: String,
    pub artifact_id: Option<String>,
    pub summary: String,
}

impl From<NoticeKind> for Notice {
    fn from(kind: NoticeKind) -> Self {
        match kind {
            NoticeKind::TurnCap => Self::TurnCap,
            NoticeKind::Storage => Self::Storage,
            NoticeKind::Loop => Self::Loop,
            NoticeKind::CallAsText => Self::CallAsText,
            NoticeKind::EmptyAnswer => Self::EmptyAnswer,
            NoticeKind::CutTwice => Self::CutTwice,
        }
    }
}

impl Body {
    /// The call that this part shows, if it shows one.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&str> {
        match self {
            Self::Question(card) => Some(&card.tool_call_id),
            Self::Plan(card) => Some(&card.tool_call_id),
            Self::Tool(line) => Some(&line.tool_call_id),
            Self::Said { .. }
            | Self::Prose { .. }
            | Self::Thinking { .. }
            | Self::Separator
            | Self::Progress { .. }
            | Self::Stopped { .. }
            | Self::Failed { .. }
            | Self::Notice(_)
            | Self::Verdict { .. }
            | Self::Handoff(_)
            | Self::Steer(_)
            | Self::Note { .. } => None,
        }
    }
}

/// `12-3` in attributes of a page.
impl Display for PartKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.piece {
            Piece::Separator => write!(f, "{}-step", self.seq),
            Piece::Block(index) => write!(f, "{}-{index}", self.seq),
            Piece::End => write!(f, "{}-end", self.seq),
        }
    }
}

/// A readable form: a line for the unit, then one a part.
impl Display for Unit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} {}", self.who, self.key)?;
        self.parts.iter().try_for_each(|part| writeln!(f, "  {}: {}", part.key, part.body))
    }
}

impl Display for Body {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let retry = |can_retry: bool| if can_retry { " [retry]" } else { "" };
        let going_on = |open: bool| if open { "…" } else { "" };
        match self {
            Self::Said { text, images: 0 } => f.write_str(text),
            Self::Said { text, images } => write!(f, "{text} [{images} images]"),
            Self::Prose { text, open } => write!(f, "{text}{}", going_on(*open)),
            Self::Thinking { text, open } => write!(f, "~ {text}{}", going_on(*open)),
            Self::Question(card) => write!(f, "{card}"),
            Self::Plan(card) => write!(f, "plan {:?} [{:?}]", card.plan.title, card.state),
            Self::Tool(line) => {
                write!(f, "{} {} [{:?}]", line.label, line.args, line.state)?;
                if line.text.is_empty() { Ok(()) } else { write!(f, " {}", line.text) }
            }
            Self::Separator => f.write_str("---"),
            Self::Progress { block_id, title, status } => {
                write!(f, "block {} [{status:?}]", title.as_deref().unwrap_or(block_id))
            }
            Self::Stopped { words, can_retry } => write!(f, "stopped {words:?}{}", retry(*can_retry)),
            Self::Failed { words, can_retry } => write!(f, "failed: {words}{}", retry(*can_retry)),
            Self::Notice(notice) => write!(f, "notice {notice:?}"),
            Self::Verdict { accepted, note } => {
                write!(
                    f,
                    "{} {}",
                    if *accepted { "accepted" } else { "sent back" },
                    note.as_deref().unwrap_or_default()
                )
            }
            Self::Handoff(assessment) => write!(f, "handoff, goal {:?}", assessment.goal),
            Self::Steer(steer) => write!(f, "{} {}: {}", steer.kind, steer.outcome, steer.summary),
            Self::Note { text } => write!(f, "note: {text}"),
        }
    }
}

impl Display for QuestionCard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "? {} ", self.question.text())?;
        match &self.state {
            QuestionState::Pending => f.write_str("[Pending]")?,
            QuestionState::Answered(graded) => write!(f, "[{:?}: {}]", graded.verdict, graded.answer.shown())?,
            QuestionState::Told(text) => write!(f, "[Told: {text}]")?,
            QuestionState::Closed => f.write_str("[Closed]")?,
        }
        if self.hinted {
            f.write_str(" hinted")?;
        }
        if let Some(reason) = &self.objection {
            write!(f, " objection: {reason}")?;
        }
        if let Some(judgement) = &self.judgement {
            write!(f, " judged {}: {}", judgement.verdict, judgement.reason)?;
        }
        Ok(())
    }
}
