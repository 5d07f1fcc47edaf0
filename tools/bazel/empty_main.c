// SPDX-License-Identifier: Apache-2.0
// The program of a test that passes if it links (weft_header_test).
int main(void) { return 0; }
