# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# Encoding on a device, GB/s of data and share of the copy.
include "storage_tables";
input | storage_table("RS over"; "RS, k")
