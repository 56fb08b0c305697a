#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/transformer/attention/transformer_xl_options.h"

namespace posenc {

/// The rows of positions reach, ..., -reach, (2 reach + 1, D) on the CPU.
at::Tensor transformer_xl_rows(const TransformerXLOptions& options, int64_t reach,
                               at::ScalarType dtype);

/// Throws c10::ValueError naming `module` for an odd number of sequences with bi_data.
void check_bi_data(const char* module, const TransformerXLOptions& options, int64_t batch);

}  // namespace posenc
