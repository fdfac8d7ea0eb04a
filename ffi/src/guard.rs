//! The guard between C and the library: pointers are looked at before they are used, and no panic gets across.
//!
//! The caller answers for what cannot be seen from here (a pointer to something else, or to what was freed), as the top
//! of the header says.

use crate::error::{Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_NULL, HVQ_ERR_PANIC, HVQ_OK, hvq_result, report};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, ptr, slice};

/// Runs the body of an entry.
pub(crate) fn entry(body: impl FnOnce() -> Result<(), Failure>) -> hvq_result {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => HVQ_OK,
        Ok(Err(failure)) => report(failure),
        Err(_) => report(HVQ_ERR_PANIC.into()),
    }
}

/// Returns the value that a pointer points to.
///
/// # Safety
///
/// `pointer` is NULL or valid for as long as the result is used.
pub(crate) unsafe fn reference<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller says so.
    unsafe { pointer.as_ref() }.filter(|_| pointer.is_aligned()).ok_or_else(|| HVQ_ERR_NULL.into())
}

/// Writes through a pointer.
///
/// # Safety
///
/// `pointer` is NULL or may be written.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) -> Result<(), Failure> {
    check(pointer)?;
    // SAFETY: the caller says so; what was there before is not read.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Checks that a result can be written through `pointer`, before anything is done.
pub(crate) fn check<T>(pointer: *mut T) -> Result<(), Failure> {
    if pointer.is_null() || !pointer.is_aligned() { Err(HVQ_ERR_NULL.into()) } else { Ok(()) }
}

/// Elements that C passes; NULL is fine for none.
///
/// # Safety
///
/// `count` elements at `pointer` are valid for as long as the result is used, or it is NULL.
pub(crate) unsafe fn elements<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(HVQ_ERR_NULL.into());
    }
    if count.checked_mul(mem::size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Failure::because(HVQ_ERR_ARGUMENT, "a length beyond the address space"));
    }
    // SAFETY: the caller says so, and the size is possible.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Room that C offers; NULL is fine for none.
///
/// # Safety
///
/// `count` elements at `pointer` may be written for as long as the result is used, or it is NULL.
pub(crate) unsafe fn room<'a, T>(
    pointer: *mut T,
    count: usize,
) -> Result<&'a mut [mem::MaybeUninit<T>], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer)?;
    if count.checked_mul(mem::size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Failure::because(HVQ_ERR_ARGUMENT, "a length beyond the address space"));
    }
    // SAFETY: the caller says so, the size is possible, and what may not be initialised is typed so.
    Ok(unsafe { slice::from_raw_parts_mut(pointer.cast(), count) })
}

/// Copies `bytes` to the start of `room`, as far as they fit.
pub(crate) fn copy_into(room: &mut [mem::MaybeUninit<u8>], bytes: &[u8]) {
    let length = room.len().min(bytes.len());
    // SAFETY: both have so many bytes, and what may be written overlaps nothing that is borrowed for reading.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), room.as_mut_ptr().cast(), length) };
}

/// Text of C; `None` if it is NULL.
///
/// # Safety
///
/// `pointer` is NULL or points to text that ends with a zero byte and is valid for as long as the result is used.
pub(crate) unsafe fn optional_text<'a>(pointer: *const c_char) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| Failure::because(HVQ_ERR_ARGUMENT, "text that is not UTF-8"))
}

/// Text of C.
///
/// # Safety
///
/// `pointer` is NULL or points to text that ends with a zero byte and is valid for as long as the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller says so.
    unsafe { optional_text(pointer) }?.ok_or_else(|| HVQ_ERR_NULL.into())
}

/// Copies `text` and a zero byte to `buffer`, cut to `capacity`, and returns what the whole needs.
///
/// # Safety
///
/// `capacity` bytes at `buffer` may be written, or it is NULL.
pub(crate) unsafe fn put_text(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if !buffer.is_null() && capacity > 0 {
        let length = text.len().min(capacity - 1);
        // SAFETY: `length + 1` bytes fit, and nothing of ours overlaps memory of the caller.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, length);
            buffer.add(length).write(0);
        }
    }
    text.len() + 1
}

/// A struct that begins with its size in bytes, as a `size_t`, and has nothing but numbers, pointers and functions in it,
/// for all of which zeros are a value.
///
/// # Safety
///
/// The type is such a struct.
pub(crate) unsafe trait Versioned: Copy {
    /// The size that the first version of the struct had.
    const FIRST_SIZE: usize;
    /// Returns the values of fields that the caller's version does not have.
    fn defaults() -> Self;
}

/// Returns true if a version of the struct can have this size: none ends within a pointer.
fn is_size_of<T: Versioned>(size: usize) -> bool {
    (T::FIRST_SIZE..=1 << 16).contains(&size) && size.is_multiple_of(mem::align_of::<T>())
}

/// Reads a struct of whatever version the caller was compiled with.
///
/// # Safety
///
/// `pointer` is NULL or points to a struct that has as many bytes as it says.
pub(crate) unsafe fn versioned<T: Versioned>(pointer: *const T) -> Result<T, Failure> {
    // SAFETY: the struct begins with its size.
    let size = *unsafe { reference(pointer.cast::<usize>()) }?;
    let known = mem::size_of::<T>();
    let wrong = || {
        Failure::because(HVQ_ERR_ARGUMENT, "a struct of an impossible size: was its init function called?")
    };
    if !is_size_of::<T>(size) {
        return Err(wrong());
    }
    let mut value = T::defaults();
    // SAFETY: the caller's struct has `size` bytes, and any bytes are a value of such a struct.
    unsafe {
        ptr::copy_nonoverlapping(pointer.cast::<u8>(), ptr::from_mut(&mut value).cast(), size.min(known))
    };
    // SAFETY: as above, for what a later version has more.
    let rest = unsafe { elements(pointer.cast::<u8>().add(size.min(known)), size.saturating_sub(known)) }?;
    if rest.iter().any(|byte| *byte != 0) {
        let reason = "a struct of a later version of the library, with settings that this one does not know";
        return Err(Failure::because(HVQ_ERR_ARGUMENT, reason));
    }
    Ok(value)
}

/// Fills a struct of `size` bytes with the defaults.
///
/// # Safety
///
/// `size` bytes at `pointer` may be written, or it is NULL.
pub(crate) unsafe fn initialise<T: Versioned>(pointer: *mut T, size: usize) -> Result<(), Failure> {
    check(pointer)?;
    if !is_size_of::<T>(size) {
        return Err(Failure::because(HVQ_ERR_ARGUMENT, "pass the size of the struct"));
    }
    let value = T::defaults();
    let known = size.min(mem::size_of::<T>());
    // SAFETY: that many bytes may be written, and the first of them hold the size.
    unsafe {
        ptr::write_bytes(pointer.cast::<u8>(), 0, size);
        ptr::copy_nonoverlapping(ptr::from_ref(&value).cast::<u8>(), pointer.cast(), known);
        pointer.cast::<usize>().write(size);
    }
    Ok(())
}
