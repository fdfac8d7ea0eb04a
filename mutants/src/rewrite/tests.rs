use super::*;
use crate::catalogue::Key;

/// Mutants of `source`: a genre, the text at whose first place it is, and what replaces it.
fn mutants(source: &str, wanted: &[(Genre, &str, &str)]) -> Vec<Mutant> {
    let one = |(number, (genre, text, replacement)): (usize, &(Genre, &str, &str))| Mutant {
        number: number as u32,
        key: Key { file: "a.rs".into(), mutation: String::new(), line: String::new(), ordinal: 0 },
        genre: *genre,
        start: source.find(text).expect("it is there"),
        replacement: (*replacement).into(),
    };
    wanted.iter().enumerate().map(one).collect()
}

fn rewritten(source: &str, wanted: &[(Genre, &str, &str)], constants: &[&str]) -> Rewritten {
    let mutants = mutants(source, wanted);
    let constants = constants.iter().map(|name| (*name).to_owned()).collect();
    let new = rewrite(source, &mutants.iter().collect::<Vec<_>>(), &constants).expect("it is Rust");
    syn::parse_file(&new.source).unwrap_or_else(|error| panic!("{error}: {}", new.source));
    assert_eq!(new.source.lines().count(), source.lines().count());
    new
}

#[test]
fn operators_within_operators_have_each_a_switch_and_the_alternatives_none() {
    let source = "fn f(a: u8, b: u8) -> bool {\n    a +\n    // why\n    1 < b\n}";
    let wanted = [(Genre::BinaryOperator, "+", "-"), (Genre::BinaryOperator, "<", "<=")];
    let new = rewritten(source, &wanted, &[]);
    assert!(new.left_out.is_empty());
    assert!(new.source.contains(
        "(if crate::mutation::is(1) { a + 1 <= b } else { (if crate::mutation::is(0) { a - 1 } else { a +"
    ));
    assert!(new.source.contains("1 }) < b })"), "{}", new.source);
}

#[test]
fn arms_and_guards_are_switched_together() {
    let source = "fn f(a: u8) -> u8 {\n    match a {\n        1 => 2,\n        n if n > 3 => 4,\n        _ => 5,\n    }\n}";
    let wanted = [
        (Genre::MatchArm, "1 =>", ""),
        (Genre::MatchArm, "n if", ""),
        (Genre::MatchArmGuard, "n > 3", "true"),
        (Genre::BinaryOperator, "> 3", ">="),
        (Genre::FnValue, "match", "0"),
    ];
    let new = rewritten(source, &wanted, &[]);
    assert!(new.left_out.is_empty());
    assert!(new.source.contains("if crate::mutation::is(4) { return 0; }; match"), "{}", new.source);
    assert!(new.source.contains("1 if !crate::mutation::is(0) =>"), "{}", new.source);
    let guard = "n if !crate::mutation::is(1) && ((if crate::mutation::is(2) { true } else { (if crate::mutation::is(3) { n >= 3 } else { n > 3 }) })) =>";
    assert!(new.source.contains(guard), "{}", new.source);
}

#[test]
fn what_is_evaluated_when_compiling_has_no_switch() {
    let source = "const A: u8 = 1 + 2;\nconst fn f() -> u8 { 3 * 4 }\nconst fn g() -> u8 { 5 / 6 }\nfn h(x: Option<u8>) -> bool { if let Some(_) = x && true { !false } else { false } }";
    let wanted = [
        (Genre::BinaryOperator, "+", "-"),
        (Genre::BinaryOperator, "*", "-"),
        (Genre::BinaryOperator, "/", "*"),
        (Genre::BinaryOperator, "&&", "||"),
        (Genre::UnaryOperator, "!", ""),
    ];
    let new = rewritten(source, &wanted, &["f"]);
    assert_eq!(new.left_out, [0, 1, 3]);
    assert!(new.source.contains("const fn f") && new.source.contains("      fn g"), "{}", new.source);
    assert!(new.source.contains("(if crate::mutation::is(4) { false } else { !false })"));
}

#[test]
fn a_region_says_whose_text_it_is() {
    let source = "fn f(a: u8) -> bool { a == 1 }";
    let new = rewritten(source, &[(Genre::BinaryOperator, "==", "!=")], &[]);
    let exact =
        new.regions.iter().find(|region| region.exact && new.source[region.bytes.clone()].contains("a != 1"));
    assert_eq!(exact.map(|region| &region.mutants[..]), Some(&[0][..]));
    let whole = new.regions.iter().find(|region| !region.exact).expect("the expression");
    assert!(
        new.source[whole.bytes.clone()].starts_with("(if") && new.source[whole.bytes.clone()].ends_with("})")
    );
}
