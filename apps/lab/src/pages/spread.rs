//! Pages of many hosts: the captures that are free to use have 53 at most, and large sites have more than a hundred.
//!
//! A page keeps its bytes, its dependencies and its document. Every other object is taken to come from as many hosts as it
//! takes: it is repeated, each copy with an equal share of the bytes, on a host of its own, after the same event as the
//! original; what follows from the original still does. So what grows is the number of connections and requests alone.

use super::page::{Object, ObjectId, Page};

impl Page {
    /// The page spread over at least `hosts` hosts. A page of the document alone stays as it is.
    #[must_use]
    pub fn spread(&self, hosts: u32) -> Self {
        let others = self.objects.len().saturating_sub(1);
        if others == 0 {
            return self.clone();
        }
        let copies = (hosts as usize).saturating_sub(1).div_ceil(others).max(1);
        let mut objects = self.objects.clone();
        for (host, object) in (1..).zip(&mut objects[1..]) {
            object.domain = host;
            object.size = share(object.size, copies);
        }
        for _ in 1..copies {
            for original in 1..=others {
                let number = u32::try_from(objects.len()).expect("a page has a few thousand objects");
                objects.push(Object { id: ObjectId(number), domain: number, ..objects[original].clone() });
            }
        }
        Self { id: format!("{}x{hosts}", self.id), objects, ..self.clone() }
    }
}

/// One of `copies` equal parts of `size` bytes.
fn share(size: u64, copies: usize) -> u64 {
    size.div_ceil(copies as u64)
}

#[cfg(test)]
mod tests {
    use crate::pages::builtin;

    #[test]
    fn a_page_of_many_hosts_keeps_its_bytes_and_its_order() {
        for page in builtin::pages() {
            let spread = page.spread(120);
            assert!(spread.domains() >= 120, "{}: {}", page.id, spread.domains());
            let slack = spread.objects.len() as u64;
            assert!((page.bytes()..=page.bytes() + slack).contains(&spread.bytes()), "{}", page.id);
            for (index, object) in spread.objects.iter().enumerate() {
                assert_eq!(object.id.index(), index);
                assert!(object.after.is_none_or(|after| after.object.index() < page.objects.len()));
            }
        }
    }
}
