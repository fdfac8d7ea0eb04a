//! Each scheme held against eMBB alone on the same pages and stretches.

use crate::experiment::pages::{PageOutcome, Scheme};
use hvq_emulation::samples::{mean, quantile};
use std::collections::BTreeMap;

/// The quantile of the normal distribution for 95 % confidence.
const Z: f64 = 1.96;

/// A load: page and repetition.
type Load<'a> = (&'a str, u32);

/// One scheme over one pair of channels.
#[derive(Clone, PartialEq, Debug)]
pub struct PageComparison {
    /// The name of the channels.
    pub channels: String,
    /// The scheme.
    pub scheme: Scheme,
    /// Loads that ended.
    pub loads: usize,
    /// Loads that did not.
    pub failed: usize,
    /// The mean page load time in ms, as are the next two.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// 95 % were no longer.
    pub p95: f64,
    /// The share by which the mean is shorter than with eMBB alone; `None` for eMBB alone, or if that was not run.
    pub gain: Option<f64>,
    /// Half the width of the 95 % confidence interval of the gain, from the differences load by load.
    pub confidence: Option<f64>,
    /// The gain over that of the ideal channel, if that was run.
    pub of_gap: Option<f64>,
    /// The share of bytes that went over URLLC.
    pub urllc_share: f64,
}

/// A comparison for each pair of channels and scheme, in the order of the outcomes.
pub fn comparisons(outcomes: &[PageOutcome]) -> Vec<PageComparison> {
    let mut keys: Vec<(&str, Scheme)> = Vec::new();
    for outcome in outcomes {
        let key = (outcome.channels.as_str(), outcome.scheme);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut channels: Vec<&str> = keys.iter().map(|key| key.0).collect();
    channels.dedup();
    keys.sort_by_key(|key| channels.iter().position(|name| *name == key.0));
    keys.into_iter().map(|(channels, scheme)| comparison(outcomes, channels, scheme)).collect()
}

fn comparison(outcomes: &[PageOutcome], channels: &str, scheme: Scheme) -> PageComparison {
    let of = |scheme: Scheme| {
        outcomes.iter().filter(move |outcome| outcome.channels == channels && outcome.scheme == scheme)
    };
    let times = |scheme: Scheme| -> BTreeMap<Load<'_>, f64> {
        of(scheme)
            .filter_map(|outcome| Some(((outcome.page.as_str(), outcome.repetition), outcome.plt_ms?)))
            .collect()
    };
    let own = times(scheme);
    let (alone, ideal) = (times(Scheme::EmbbAlone), times(Scheme::Ideal));
    let gained = Gain::of(&own, &alone).filter(|_| scheme != Scheme::EmbbAlone);
    let limit = Gain::of(&ideal, &alone);
    let of_gap = gained.zip(limit).filter(|(_, limit)| limit.share > 0.0);
    let mut sorted: Vec<f64> = own.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let (urllc, embb) = of(scheme)
        .fold((0, 0), |(urllc, embb), outcome| (urllc + outcome.urllc.bytes(), embb + outcome.embb.bytes()));
    PageComparison {
        channels: channels.to_owned(),
        scheme,
        loads: own.len(),
        failed: of(scheme).filter(|outcome| outcome.plt_ms.is_none()).count(),
        mean: mean(&sorted),
        median: quantile(&sorted, 0.5).unwrap_or_default(),
        p95: quantile(&sorted, 0.95).unwrap_or_default(),
        gain: gained.map(|gain| gain.share),
        confidence: gained.map(|gain| gain.half_width),
        of_gap: of_gap.map(|(gain, limit)| gain.share / limit.share),
        urllc_share: urllc as f64 / ((urllc + embb) as f64).max(1.0),
    }
}

/// A gain over eMBB alone.
#[derive(Clone, Copy, Debug)]
struct Gain {
    share: f64,
    half_width: f64,
}

impl Gain {
    /// From the loads that ended with both; `None` if there are none.
    fn of(own: &BTreeMap<Load<'_>, f64>, alone: &BTreeMap<Load<'_>, f64>) -> Option<Self> {
        let pairs: Vec<(f64, f64)> =
            own.iter().filter_map(|(load, time)| Some((*time, *alone.get(load)?))).collect();
        let base = mean(&pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>());
        let saved: Vec<f64> = pairs.iter().map(|(own, alone)| alone - own).collect();
        if pairs.is_empty() || base <= 0.0 {
            return None;
        }
        let average = mean(&saved);
        let squares: f64 = saved.iter().map(|value| (value - average).powi(2)).sum();
        let variance = squares / (saved.len().max(2) - 1) as f64;
        let half_width = Z * (variance / saved.len() as f64).sqrt() / base;
        Some(Self { share: average / base, half_width })
    }
}
