// The rows of a sequence that stand for it.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>

#include "models/encoder/parts.h"

namespace posenc {

using encoder::Pooling;

bool has_pooler(const EncoderOptions& options) {
  return options.pooling() == Pooling::TanhOfFirst || options.pooling() == Pooling::LinearOfFirst ||
         options.pooling() == Pooling::LinearOfLast;
}

bool has_pooler_norm(const EncoderOptions& options) {
  return options.pooling() == Pooling::NormOfFirst || options.pooling() == Pooling::NormOfMean;
}

bool has_pooling_weights(const EncoderOptions& options) {
  return has_pooler(options) || has_pooler_norm(options) || options.pooling() == Pooling::Attention;
}

namespace {

// The index of each sequence's last id that is not padding; 0 where all are.
at::Tensor last_tokens(const EncoderOptions& options, const at::Tensor& ids) {
  const auto positions = at::arange(ids.size(1), ids.options().dtype(at::kLong));
  if (options.pad_token_id()) return (positions * ids.ne(*options.pad_token_id())).argmax(-1);
  TORCH_CHECK_VALUE(ids.size(0) == 1,
                    "[Encoder] pad_token_id must be set for more than one sequence, to find their "
                    "last tokens. Got ",
                    ids.size(0), " sequences");
  return positions.narrow(0, ids.size(1) - 1, 1);
}

// The index of each sequence's last id that is eos_token_id.
at::Tensor last_ends(const EncoderOptions& options, const at::Tensor& ids) {
  const at::Tensor ends = ids.eq(options.eos_token_id());
  TORCH_CHECK_VALUE(ends.any(1).all().item<bool>(),
                    "[Encoder] each sequence must have an end, the id ", options.eos_token_id(),
                    ", of which the last is pooled. Got one without");
  return (at::arange(1, ids.size(1) + 1, ids.options().dtype(at::kLong)) * ends).argmax(-1);
}

at::Tensor rows_at(const at::Tensor& hidden, const at::Tensor& indices) {
  return hidden.index({at::arange(hidden.size(0), indices.options()), indices});
}

}  // namespace

at::Tensor pooled_rows(const EncoderOptions& options, const at::Tensor& hidden,
                       const at::Tensor& ids) {
  switch (options.pooling()) {
    case Pooling::EndToken:
    case Pooling::LargestToken: {
      const at::Tensor marks = options.pooling() == Pooling::EndToken
                                   ? ids.eq(options.eos_token_id()).to(at::kInt)
                                   : ids.to(at::kInt);
      return rows_at(hidden, marks.argmax(-1));  // the first of several
    }
    case Pooling::LastEndToken: return rows_at(hidden, last_ends(options, ids));
    case Pooling::NormOfMean: return hidden.slice(1, 1).mean(1);
    case Pooling::LastToken:  // the last row of inputs_embeds, as in transformers
      if (ids.defined()) return rows_at(hidden, last_tokens(options, ids));
      [[fallthrough]];
    case Pooling::Last:
    case Pooling::LinearOfLast: return hidden.select(1, hidden.size(1) - 1);
    case Pooling::Mean: return hidden.mean(1);
    default: return hidden.select(1, 0);
  }
}

}  // namespace posenc
