// SPDX-License-Identifier: Apache-2.0
//! The crate rlnc-simdx. It allocates each packet that it makes, and takes over packets that it
//! decodes.

use std::ffi::CStr;

use ::rlnc_simdx::{CodedPacket, Decoder, Encoder, Recoder, SimpleRng};

pub const VERSION: &CStr = c"rlnc-simdx 1.3.1";
pub const POLYNOMIAL: u32 = 0x11b;

pub struct Library {
    n: usize,
    k: usize,
    data: Vec<u8>,
    encoder: Encoder,
    rng: SimpleRng,
    given: Vec<u8>,
    held: Vec<CodedPacket>, // the same
    packets: Vec<CodedPacket>,
    blocks: Vec<Vec<u8>>, // decoded; empty if the last call made packets
}

impl super::Coder for Library {
    fn new(n: usize, k: usize, data: &mut [u8]) -> Option<Self> {
        Some(Library {
            n,
            k,
            data: data.to_vec(),
            encoder: Encoder::new(n, k).ok()?,
            rng: SimpleRng::new(1),
            given: Vec::new(),
            held: Vec::new(),
            packets: Vec::new(),
            blocks: Vec::new(),
        })
    }

    fn data_bytes(&self) -> usize {
        self.n * self.k
    }

    fn encode(&mut self, m: usize) -> Option<()> {
        let source: Vec<&[u8]> = self.data.chunks_exact(self.k).collect();
        self.blocks.clear();
        self.packets.clear();
        for _ in 0..m {
            self.packets.push(self.encoder.encode_random(&source, &mut self.rng).ok()?);
        }
        Some(())
    }

    fn give(&mut self, packets: &[u8]) -> Option<()> {
        self.given = packets.to_vec();
        self.held = packets
            .chunks_exact(self.n + self.k)
            .map(|p| CodedPacket::from_slices(&p[..self.n], &p[self.n..]))
            .collect();
        Some(())
    }

    fn recode(&mut self, m: usize) -> Option<()> {
        self.blocks.clear();
        self.packets.clear();
        for _ in 0..m {
            self.packets.push(Recoder::recode(&self.held, &mut self.rng).ok()?);
        }
        Some(())
    }

    fn decode(&mut self) -> Option<()> {
        let mut decoder = Decoder::new(self.n, self.k).ok()?;
        for packet in self.given.chunks_exact(self.n + self.k) {
            let packet = CodedPacket::from_slices(&packet[..self.n], &packet[self.n..]);
            decoder.receive(packet).ok()?.then_some(())?;
        }
        self.blocks = decoder.decode().ok()??;
        Some(())
    }

    fn take(&self, out: &mut [u8]) -> usize {
        let parts: Vec<&[u8]> = if self.blocks.is_empty() {
            self.packets.iter().flat_map(|p| [p.coefficients_slice(), p.payload_slice()]).collect()
        } else {
            self.blocks.iter().map(Vec::as_slice).collect()
        };
        let mut at = 0;
        for part in parts {
            let end = (at + part.len()).min(out.len());
            out[at.min(end)..end].copy_from_slice(&part[..end - at.min(end)]);
            at += part.len();
        }
        at
    }
}
