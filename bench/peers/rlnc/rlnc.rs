// SPDX-License-Identifier: Apache-2.0
//! The crate rlnc. It writes into buffers that the caller keeps. Its data ends in a byte that marks
//! the end, so a segment of n * k bytes has room for one byte less.

use std::ffi::CStr;

use rand::{SeedableRng, rngs::SmallRng};
use ::rlnc::full::{Decoder, Encoder, Recoder};

pub const VERSION: &CStr = c"rlnc 0.8.5";
pub const POLYNOMIAL: u32 = 0x11b;

const END: u8 = 0x81;

pub struct Library {
    n: usize,
    k: usize,
    encoder: Encoder,
    recoder: Option<Recoder>,
    rng: SmallRng,
    given: Vec<u8>,
    made: Vec<u8>, // m packets, or data; grows to the largest call's size
    made_bytes: usize,
}

impl Library {
    fn room_for(&mut self, m: usize) {
        self.made_bytes = m * (self.n + self.k);
        if self.made.len() < self.made_bytes {
            self.made.resize(self.made_bytes, 0);
        }
    }
}

impl super::Coder for Library {
    fn new(n: usize, k: usize, data: &mut [u8]) -> Option<Self> {
        let encoder = Encoder::new(data[..n * k - 1].to_vec(), n).ok()?;
        data[n * k - 1] = END;
        (encoder.get_piece_byte_len() == k).then_some(Library {
            n,
            k,
            encoder,
            recoder: None,
            rng: SmallRng::seed_from_u64(1),
            given: Vec::new(),
            made: Vec::new(),
            made_bytes: 0,
        })
    }

    fn data_bytes(&self) -> usize {
        self.n * self.k - 1
    }

    fn encode(&mut self, m: usize) -> Option<()> {
        self.room_for(m);
        for packet in self.made[..self.made_bytes].chunks_exact_mut(self.n + self.k) {
            self.encoder.code_with_buf(&mut self.rng, packet).ok()?;
        }
        Some(())
    }

    fn give(&mut self, packets: &[u8]) -> Option<()> {
        self.given = packets.to_vec();
        self.recoder = Some(Recoder::new(packets.to_vec(), self.n + self.k, self.n).ok()?);
        Some(())
    }

    fn recode(&mut self, m: usize) -> Option<()> {
        self.room_for(m);
        let recoder = self.recoder.as_mut()?;
        for packet in self.made[..self.made_bytes].chunks_exact_mut(self.n + self.k) {
            recoder.recode_with_buf(&mut self.rng, packet).ok()?;
        }
        Some(())
    }

    fn decode(&mut self) -> Option<()> {
        let mut decoder = Decoder::new(self.k, self.n).ok()?;
        for packet in self.given.chunks_exact(self.n + self.k) {
            decoder.decode(packet).ok()?;
        }
        self.made = decoder.get_decoded_data().ok()?;
        self.made_bytes = self.made.len();
        Some(())
    }

    fn take(&self, out: &mut [u8]) -> usize {
        let bytes = self.made_bytes.min(out.len());
        out[..bytes].copy_from_slice(&self.made[..bytes]);
        self.made_bytes
    }
}
