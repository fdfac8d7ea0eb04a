//! The measurements that say why a goal is missed.

use super::goal::number;
use super::results::{Results, Term};
use crate::experiment::definition::{Better, Measure};
use crate::experiment::pages::Scheme;

/// The means, bytes on URLLC and failures of the scheme of `term` beside those of the scheme that does best there, and of
/// eMBB alone: a reader sees whether data went the wrong way, waited, or was lost.
pub(super) fn evidence(results: &Results<'_>, term: Term<'_>) -> String {
    let Term { cell, scheme, .. } = term;
    let mean = |scheme| results.estimate(&Measure::Mean, cell, scheme).map(|mean| mean.value);
    let schemes = &results.definition.schemes;
    let real = schemes.iter().copied().filter(|known| *known != Scheme::Ideal);
    let measured = real.filter_map(|known| Some((known, mean(known)?)));
    let better = results.definition.workload.better();
    let best = match better {
        Better::Less => measured.min_by(|one, other| one.1.total_cmp(&other.1)),
        Better::More => measured.max_by(|one, other| one.1.total_cmp(&other.1)),
    };
    let mut shown: Vec<Scheme> = Vec::new();
    for known in [Some(scheme), best.map(|(best, _)| best), Some(Scheme::EmbbAlone)].into_iter().flatten() {
        if !shown.contains(&known) && schemes.contains(&known) {
            shown.push(known);
        }
    }
    shown.into_iter().filter_map(|known| sentence(results, term, known)).collect::<Vec<_>>().join("; ")
}

fn sentence(results: &Results<'_>, term: Term<'_>, scheme: Scheme) -> Option<String> {
    let value = |measure: Measure| {
        let estimate = results.estimate(&measure, term.cell, scheme)?;
        Some((estimate.value, number(&measure, estimate.value)))
    };
    let (_, mean) = value(Measure::Mean)?;
    let mut text = format!("{scheme} {mean}");
    if let Some((_, share)) = value(Measure::Urllc) {
        text.push_str(&format!(", {share} of bytes on URLLC"));
    }
    match value(Measure::Failed) {
        Some((failed, share)) if failed > 0.0 => text.push_str(&format!(", {share} of runs failed")),
        _ => {}
    }
    Some(text)
}
