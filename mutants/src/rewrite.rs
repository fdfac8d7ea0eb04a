//! Puts the mutants of a file into its source as switches, without moving a line.

use crate::catalogue::{Genre, Mutant};
use anyhow::{Context, Result};
use proc_macro2::Span;
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprBinary, ExprMatch, ExprUnary};

/// A part of the new source that belongs to mutants: an error of the compiler there is theirs.
#[derive(Clone, Debug)]
pub struct Region {
    /// Bytes of the new source.
    pub bytes: Range<usize>,
    /// Numbers of mutants.
    pub mutants: Vec<u32>,
    /// The text of the mutation itself, as opposed to an expression that contains it.
    pub exact: bool,
}

/// A file with switches.
#[derive(Debug)]
pub struct Rewritten {
    /// The new source.
    pub source: String,
    /// The places of mutants in it.
    pub regions: Vec<Region>,
    /// Mutants that have no switch: nothing that can be one is at their place.
    pub left_out: Vec<u32>,
}

/// Text to insert. At one place, what was collected first comes first, and ends come before beginnings, the last begun first.
struct Insertion {
    at: usize,
    order: i64,
    text: String,
    mutants: Vec<u32>,
    /// The end of the expression that begins here, to which errors are laid that are in none of its alternatives.
    extent: Option<usize>,
}

struct Collector<'a> {
    /// The mutants of the file that are not placed yet, by the first byte of what they replace.
    at: BTreeMap<usize, Vec<&'a Mutant>>,
    insertions: Vec<Insertion>,
    counter: i64,
    /// `const` of functions, which cannot hold a switch.
    constants: Vec<(String, Range<usize>)>,
    /// Nesting of the visitor in expressions that are evaluated when compiling.
    frozen: usize,
}

/// `source` with a switch for each of `mutants`. Functions lose their `const`, but for those named in `constants`.
///
/// # Errors
///
/// If the file cannot be parsed.
pub fn rewrite(source: &str, mutants: &[&Mutant], constants: &BTreeSet<String>) -> Result<Rewritten> {
    let file = syn::parse_file(source).context("it is no Rust")?;
    let mut at: BTreeMap<usize, Vec<&Mutant>> = BTreeMap::new();
    let mut insertions = Vec::new();
    for mutant in mutants {
        at.entry(mutant.start).or_default().push(mutant);
    }
    let mut collector =
        Collector { at, insertions: Vec::new(), counter: 1, constants: Vec::new(), frozen: 0 };
    collector.visit_file(&file);
    let frozen: Vec<_> =
        collector.constants.iter().filter(|(name, _)| constants.contains(name)).map(|(_, at)| at).collect();
    let is_frozen = |at: usize| frozen.iter().any(|range| range.contains(&at));
    let mut left_out: Vec<u32> = collector.at.values().flatten().map(|mutant| mutant.number).collect();
    for insertion in collector.insertions {
        if is_frozen(insertion.at) {
            left_out.extend(insertion.mutants);
        } else {
            insertions.push(insertion);
        }
    }
    left_out.sort_unstable();
    left_out.dedup();
    let mut text = source.to_owned();
    for (name, range) in &collector.constants {
        if !constants.contains(name) {
            let word =
                text[range.start..].find("const").context("a constant function says so")? + range.start;
            text.replace_range(word..word + 5, "     ");
        }
    }
    let (source, regions) = apply(&text, insertions);
    Ok(Rewritten { source, regions, left_out })
}

fn apply(source: &str, mut insertions: Vec<Insertion>) -> (String, Vec<Region>) {
    insertions.sort_by_key(|insertion| (insertion.at, insertion.order));
    let mut new = String::with_capacity(source.len() * 2);
    let mut regions = Vec::new();
    let (mut done, mut extents) = (0, Vec::new());
    let mut shifts = Vec::new();
    for insertion in insertions {
        new.push_str(&source[done..insertion.at]);
        done = insertion.at;
        let start = new.len();
        new.push_str(&insertion.text);
        shifts.push((insertion.at, new.len()));
        if !insertion.mutants.is_empty() {
            regions.push(Region { bytes: start..new.len(), mutants: insertion.mutants.clone(), exact: true });
        }
        if let Some(end) = insertion.extent {
            extents.push((start, end, insertion.mutants));
        }
    }
    new.push_str(&source[done..]);
    for (start, end, mutants) in extents {
        let last = shifts.iter().rfind(|(at, _)| *at <= end).expect("its own beginning is one");
        regions.push(Region { bytes: start..last.1 + (end - last.0), mutants, exact: false });
    }
    (new, regions)
}

fn is(mutant: &Mutant) -> String {
    format!("crate::mutation::is({})", mutant.number)
}

fn bytes(span: Span) -> Range<usize> {
    span.byte_range()
}

/// Returns whether a chain of `&&` binds a name, so that it is no value.
fn binds(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        _ => false,
    }
}

impl Collector<'_> {
    fn insert(&mut self, at: usize, text: String, mutants: Vec<u32>, extent: Option<usize>) {
        self.insertions.push(Insertion { at, order: self.counter, text, mutants, extent });
        self.counter += 1;
    }

    /// Ends an expression that began with the insertion `order`: before all that begin here, and before outer ones.
    fn end(&mut self, at: usize, order: i64, text: &str, mutants: Vec<u32>) {
        self.insertions.push(Insertion { at, order: -order, text: text.into(), mutants, extent: None });
    }

    fn take(&mut self, at: usize, genre: Genre) -> Vec<(u32, String, String)> {
        if self.frozen > 0 {
            return Vec::new();
        }
        let Some(here) = self.at.get_mut(&at) else { return Vec::new() };
        let (taken, rest) = std::mem::take(here).into_iter().partition(|mutant| mutant.genre == genre);
        *here = rest;
        let taken: Vec<&Mutant> = taken;
        taken.into_iter().map(|it| (it.number, is(it), it.replacement.clone())).collect()
    }

    /// Puts `alternatives` before the expression at `range`, which becomes what is left if none is active.
    fn choose(&mut self, range: &Range<usize>, alternatives: Vec<(u32, String)>) -> i64 {
        let order = self.counter;
        let all: Vec<u32> = alternatives.iter().map(|(number, _)| *number).collect();
        self.insert(range.start, "(".into(), Vec::new(), None);
        if let Some(opening) = self.insertions.last_mut() {
            opening.extent = Some(range.end);
            opening.mutants.clone_from(&all);
        }
        for (number, text) in alternatives {
            let text = format!("if crate::mutation::is({number}) {{ {text} }} else ");
            self.insert(range.start, text, vec![number], None);
        }
        self.insert(range.start, "{ ".into(), Vec::new(), None);
        self.end(range.end, order, " })", all);
        order
    }

    fn body(&mut self, block: &syn::Block) {
        let Some(first) = block.stmts.first() else { return };
        let start = bytes(first.span()).start;
        let end = bytes(block.span()).end - 1;
        for (number, active, value) in self.take(start, Genre::FnValue) {
            let text = format!("if {active} {{ return {value}; }}; ");
            self.insert(start, text, vec![number], Some(end));
        }
    }

    fn signature(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if let Some(constant) = signature.constness {
            let range = bytes(constant.span()).start..bytes(block.span()).end;
            self.constants.push((signature.ident.to_string(), range));
        }
        // One type is behind `impl`, so that no other can be returned beside it.
        let is_hidden = |output: &syn::ReturnType| matches!(output, syn::ReturnType::Type(_, of) if matches!(**of, syn::Type::ImplTrait(_)));
        if !is_hidden(&signature.output) {
            self.body(block);
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.signature(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.signature(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.signature(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.frozen += 1;
        visit::visit_item_const(self, item);
        self.frozen -= 1;
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.frozen += 1;
        visit::visit_impl_item_const(self, item);
        self.frozen -= 1;
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.frozen += 1;
        visit::visit_item_static(self, item);
        self.frozen -= 1;
    }

    fn visit_type_array(&mut self, _: &'ast syn::TypeArray) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        if !binds(&binary.left) && !binds(&binary.right) {
            let (left, right) = (binary.left.to_token_stream(), binary.right.to_token_stream());
            let taken = self.take(bytes(binary.op.span()).start, Genre::BinaryOperator);
            let texts = taken.into_iter().map(|(number, _, op)| (number, format!("{left} {op} {right}")));
            let alternatives: Vec<_> = texts.collect();
            if !alternatives.is_empty() {
                self.choose(&bytes(binary.span()), alternatives);
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        let operand = unary.expr.to_token_stream().to_string();
        let taken = self.take(bytes(unary.op.span()).start, Genre::UnaryOperator);
        let alternatives: Vec<_> =
            taken.into_iter().map(|(number, _, _)| (number, operand.clone())).collect();
        if !alternatives.is_empty() {
            self.choose(&bytes(unary.span()), alternatives);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        let whole = bytes(expression.span());
        let mut all = Vec::new();
        for arm in &expression.arms {
            let gone = self.take(bytes(arm.span()).start, Genre::MatchArm);
            let condition: Vec<String> = gone.iter().map(|(_, active, _)| format!("!{active}")).collect();
            let condition = condition.join(" && ");
            let numbers: Vec<u32> = gone.iter().map(|(number, _, _)| *number).collect();
            all.extend(&numbers);
            match &arm.guard {
                None if !numbers.is_empty() => {
                    let after = bytes(arm.pat.span()).end;
                    self.insert(after, format!(" if {condition}"), numbers, None);
                }
                None => {}
                Some((_, guard)) => {
                    let range = bytes(guard.span());
                    if !numbers.is_empty() {
                        let order = self.counter;
                        self.insert(range.start, format!("{condition} && ("), numbers, None);
                        self.end(range.end, order, ")", Vec::new());
                    }
                    let constant = self.take(range.start, Genre::MatchArmGuard);
                    let texts: Vec<_> =
                        constant.into_iter().map(|(number, _, text)| (number, text)).collect();
                    if !texts.is_empty() {
                        self.choose(&range, texts);
                    }
                }
            }
        }
        if !all.is_empty() {
            self.insert(whole.start, String::new(), all, Some(whole.end));
            if let Some(last) = self.insertions.last_mut() {
                last.order = 0;
            }
        }
        visit::visit_expr_match(self, expression);
    }
}

#[cfg(test)]
mod tests;
