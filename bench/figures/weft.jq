# SPDX-License-Identifier: Apache-2.0
# What the figures share: the cases of result files.
def cases: .groups[].cases[];
def coded: .gigabytes_per_second.output;
def products: .gigabytes_per_second.products;
# median, min, max
def spread: [.median, .min, .max];
