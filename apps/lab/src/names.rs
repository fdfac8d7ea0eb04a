//! Values that are asked for by name.

/// The one of `all` that `name` calls `text`; otherwise the error says that it is no `kind`, and lists the names.
///
/// # Errors
/// None has that name.
pub fn by_name<T: Copy>(
    text: &str,
    kind: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|value| name(*value)).collect();
        format!("{text:?} is no {kind}: choose from {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_unknown_is_answered_with_those_that_are_known() {
        let name = |number| if number == 1 { "one" } else { "two" };
        assert_eq!(by_name("two", "number", &[1, 2], name), Ok(2));
        let problem = "\"moon\" is no number: choose from one, two";
        assert_eq!(by_name("moon", "number", &[1, 2], name), Err(problem.to_owned()));
    }
}
