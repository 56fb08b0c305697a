#include "posenc/transformer/layers/transformer_xl_positions.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "core/tensors.h"
#include "posenc/core/skip_init.h"
#include "positions/nn/computed_table.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/layer_parts.h"
#include "transformer/layers/transformer_xl_rows.h"

namespace posenc {

at::Tensor transformer_xl_rows(const TransformerXLOptions& options, int64_t reach,
                               at::ScalarType dtype) {
  at::Tensor positions = at::arange(reach, -reach - 1, -1, at::kLong);
  if (options.clamp_len() > 0) positions.clamp_(-options.clamp_len(), options.clamp_len());
  return module_rows(options.sinusoid(), positions, dtype);
}

void check_bi_data(const char* module, const TransformerXLOptions& options, int64_t batch) {
  TORCH_CHECK_VALUE(!options.bi_data() || batch % 2 == 0, "[", module,
                    "] the number of sequences must be even with bi_data. Got ", batch);
}

TransformerXLPositionsImpl::TransformerXLPositionsImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  TransformerXLPositionsImpl::reset();
}

void TransformerXLPositionsImpl::reset() {
  TORCH_CHECK_VALUE(options.transformer_xl(),
                    "[TransformerXLPositions] transformer_xl must be set. It is not");
  if (options.transformer_xl()->mask_embedding())
    mask_emb = register_parameter("mask_emb", torch::empty({1, 1, options.d_model()}));
  const double p = options.conformer() ? 0.0 : dropouts_of(options).output;
  dropout = register_module("dropout", torch::nn::Dropout(p));
  if (!SkipInit::is_active()) reset_parameters();
}

void TransformerXLPositionsImpl::reset_parameters() {
  if (mask_emb.defined()) torch::nn::init::normal_(mask_emb, 0.0, 0.02);
}

void TransformerXLPositionsImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::TransformerXLPositions(d_model=" << options.d_model() << ")";
}

torch::Tensor TransformerXLPositionsImpl::forward(const torch::Tensor& x) {
  const TransformerXLOptions& own = *options.transformer_xl();
  check_bi_data("TransformerXLPositions", own, x.size(0));
  const int64_t reach = std::max<int64_t>(x.size(1) - 1, 0);
  const at::Tensor rows = sent_to(transformer_xl_rows(own, reach, x.scalar_type()), x.device());
  torch::Tensor table = own.bi_data() ? at::stack({rows, rows.flip(0)}) : rows.unsqueeze(0);
  if (!is_training() || dropout->options.p() == 0.0 || x.size(0) == 0) return table;
  return drop(*dropout, table.repeat_interleave(x.size(0) / table.size(0), 0));
}

}  // namespace posenc
