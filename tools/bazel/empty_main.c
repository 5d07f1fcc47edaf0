// SPDX-License-Identifier: Apache-2.0
// The program of a test that has passed once it links (weft_header_test).
int main(void) { return 0; }
