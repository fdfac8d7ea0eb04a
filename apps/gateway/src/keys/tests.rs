use super::*;

fn at(hours: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000 + hours * 3600)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("keys")
    }

    fn open(&self, hours: u64) -> Result<Keys, KeysError> {
        Keys::open(&self.file(), at(hours))
    }
}

#[test]
fn keys_are_made_once_and_found_again() {
    let folder = Folder::new();
    assert!(Keys::check(&folder.file()).is_ok() && !folder.file().exists(), "looking makes nothing");
    let made = folder.open(0).unwrap();
    assert!(folder.open(23).unwrap() == made);
    assert!(Folder::new().open(0).unwrap().content != made.content);
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1, "nothing else is left behind");
    assert!(!format!("{made:?}").contains(&hex(&made.content.reset)));
}

#[cfg(unix)]
#[test]
fn nobody_but_the_owner_reads_keys_and_a_file_that_others_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.open(0).unwrap();
    let mode = || fs::metadata(folder.file()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    // Rotated keys, too.
    folder.open(100).unwrap();
    assert_eq!(mode(), 0o600);
    for open in [0o640, 0o604, 0o620, 0o644] {
        fs::set_permissions(folder.file(), fs::Permissions::from_mode(open)).unwrap();
        let said = folder.open(0).unwrap_err().to_string();
        assert!(said.contains(&format!("{open:o}")) && said.contains("600"), "{said}");
        assert!(Keys::check(&folder.file()).is_err());
    }
}

#[test]
fn a_damaged_file_is_said_to_be_and_never_replaced() {
    let folder = Folder::new();
    folder.open(0).unwrap();
    let whole = fs::read(folder.file()).unwrap();
    // Every byte cut off, and every byte changed.
    let changed = (0..whole.len()).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    });
    for damaged in (0..whole.len()).map(|length| whole[..length].to_vec()).chain(changed) {
        fs::write(folder.file(), &damaged).unwrap();
        let error = folder.open(0).unwrap_err();
        assert!(matches!(error, KeysError::Damaged { .. }), "{error}");
        assert_eq!(fs::read(folder.file()).unwrap(), damaged);
    }
    fs::remove_file(folder.file()).unwrap();
    fs::create_dir(folder.file()).unwrap();
    assert!(folder.open(0).is_err() && Keys::check(&folder.file()).is_err());
    assert!(Keys::check(&folder.file().join("no/such/folder")).is_err());
}

#[test]
fn keys_of_tickets_seal_for_a_day_and_open_for_three() {
    let folder = Folder::new();
    let first = folder.open(0).unwrap();
    assert_eq!(
        (first.rests(at(0)), first.rests(at(20)), first.rests(at(90))),
        (SEALS, Duration::from_secs(4 * 3600), Duration::ZERO)
    );
    let secret = first.content.tickets[0].secret;
    let mut keys = first.clone();
    assert!(!keys.rotate(at(23)).unwrap());
    for (hours, has) in [(24, true), (48, true), (71, true), (72, false)] {
        assert_eq!(keys.rotate(at(hours)).unwrap(), hours != 71, "{hours}");
        assert_ne!(keys.content.tickets[0].secret, secret);
        assert_eq!(keys.content.tickets.iter().any(|ticket| ticket.secret == secret), has, "{hours}");
        // What is in the file is what is in memory.
        assert!(folder.open(hours).unwrap() == keys);
    }
    assert!(keys.content.tickets.len() <= 4);
    // The others stay: with another key, resets would mean nothing to clients.
    assert!((keys.content.reset, keys.content.token) == (first.content.reset, first.content.token));
    // A clock that was set back makes no key after key.
    assert!(!keys.rotate(at(0)).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn whoever_takes_over_is_told_of_the_one_that_runs_and_of_nobody_else() {
    let folder = Folder::new();
    let mut keys = folder.open(0).unwrap();
    let alone = keys.succession(TakeOver::IfThere).unwrap();
    assert_eq!((alone.generation, alone.before), (Generation::Even, 0), "nobody is there");
    keys.hold(alone, 3).unwrap();
    // Somebody else, who reads the file.
    let mut second = folder.open(0).unwrap();
    let next = second.succession(TakeOver::IfThere).unwrap();
    assert_eq!((next.secret, next.generation, next.before), (alone.secret, Generation::Odd, 3));
    assert_eq!(second.succession(TakeOver::Never).unwrap().before, 0);
    second.hold(next, 5).unwrap();
    // This process plays both, and has not ended.
    let third = folder.open(0).unwrap();
    assert!(matches!(third.succession(TakeOver::IfThere), Err(KeysError::Busy(..))));
    let gone = Holder { former: 0, process: u32::MAX, ..third.content.holder.unwrap() };
    let third = Keys { content: Content { holder: Some(gone), ..third.content.clone() }, ..third };
    let again = third.succession(TakeOver::IfThere).unwrap();
    assert_eq!(again.before, 0, "it has ended");
    assert_eq!(again.generation, Generation::Odd, "whose connections it resets");
    // New keys of tickets by the first do not forget the second.
    assert!(keys.rotate(at(30)).unwrap());
    assert!(folder.open(30).unwrap().content.holder == second.content.holder);
}
