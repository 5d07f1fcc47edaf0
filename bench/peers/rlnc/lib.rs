// SPDX-License-Identifier: Apache-2.0
//! The C functions that bench/peers/rlnc_peer.h requires of an RLNC library, over a trait that each
//! library's file implements. Cargo.toml says how to build it.

#[cfg(all(feature = "rlnc", feature = "rlnc-simdx"))]
compile_error!("one library to a file: --features rlnc or --features rlnc-simdx");

#[cfg(feature = "rlnc")]
mod rlnc;
#[cfg(feature = "rlnc")]
use rlnc::{Library, POLYNOMIAL, VERSION};

#[cfg(feature = "rlnc-simdx")]
mod rlnc_simdx;
#[cfg(feature = "rlnc-simdx")]
use rlnc_simdx::{Library, POLYNOMIAL, VERSION};

use std::ffi::c_char;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// One segment of `n` blocks of `k` bytes. A packet is `n` coefficients and `k` bytes of payload.
/// Calls that fail return None; the results stay in the coder until the next call.
trait Coder: Sized {
    /// A library that needs its own mark at the end writes it into the data as well.
    fn new(n: usize, k: usize, data: &mut [u8]) -> Option<Self>;
    /// Returns how many bytes of the data are not that mark.
    fn data_bytes(&self) -> usize;
    fn encode(&mut self, m: usize) -> Option<()>;
    /// Takes packets that later calls recode and decode.
    fn give(&mut self, packets: &[u8]) -> Option<()>;
    fn recode(&mut self, m: usize) -> Option<()>;
    /// Decodes packet by packet, with a decoder made for the call.
    fn decode(&mut self) -> Option<()>;
    /// Copies the packets or the data that the last call made; returns their full length in bytes.
    fn take(&self, out: &mut [u8]) -> usize;
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_rlnc_peer_version() -> *const c_char {
    VERSION.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_rlnc_peer_polynomial() -> u32 {
    POLYNOMIAL
}

/// # Safety
/// `data` points to n * k bytes, `data_bytes` to one number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_new(
    n: usize,
    k: usize,
    data: *mut u8,
    data_bytes: *mut usize,
) -> *mut Library {
    match Library::new(n, k, unsafe { from_raw_parts_mut(data, n * k) }) {
        Some(coder) => {
            unsafe { *data_bytes = coder.data_bytes() };
            Box::into_raw(Box::new(coder))
        }
        None => std::ptr::null_mut(),
    }
}

/// # Safety
/// `coder` comes from weft_rlnc_peer_new and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_free(coder: *mut Library) {
    drop(unsafe { Box::from_raw(coder) });
}

/// # Safety
/// `coder` comes from weft_rlnc_peer_new, also in the functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_encode(coder: *mut Library, m: usize) -> bool {
    unsafe { &mut *coder }.encode(m).is_some()
}

/// # Safety
/// `packets` points to count * (n + k) bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_give(
    coder: *mut Library,
    packets: *const u8,
    bytes: usize,
) -> bool {
    unsafe { (*coder).give(from_raw_parts(packets, bytes)) }.is_some()
}

/// # Safety
/// See weft_rlnc_peer_encode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_recode(coder: *mut Library, m: usize) -> bool {
    unsafe { &mut *coder }.recode(m).is_some()
}

/// # Safety
/// See weft_rlnc_peer_encode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_decode(coder: *mut Library) -> bool {
    unsafe { &mut *coder }.decode().is_some()
}

/// # Safety
/// `out` points to `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_rlnc_peer_take(
    coder: *const Library,
    out: *mut u8,
    room: usize,
) -> usize {
    unsafe { (*coder).take(from_raw_parts_mut(out, room)) }
}
