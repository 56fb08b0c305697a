#include "nn/embedding_front_internals.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <limits>

#include "posenc/sinusoid/positions.h"
#include "torch_internals/shortcut.h"

namespace posenc {
namespace {

using front::PositionIds;

constexpr functional::LookupNames kGivenPositions = {"EmbeddingFront", "position id",
                                                     "the number of positions"};

// What a front computes with: its options and weights.
struct Front {
  const EmbeddingFrontOptions& options;
  const functional::EmbeddingFrontWeights& weights;

  int64_t max_tokens() const { return front_max_tokens(options, weights.positions); }
};

void check_front_inputs(const Front& front, const torch::Tensor& ids,
                        const EmbeddingFrontInputs& inputs) {
  TORCH_CHECK_VALUE(ids.defined() && (ids.dim() == 1 || ids.dim() == 2),
                    "[EmbeddingFront] ids must be (B, L) or (L). Got ",
                    ids.defined() ? c10::str(ids.sizes()) : "no tensor");
  TORCH_CHECK_VALUE(!inputs.token_type_ids().defined() || front.weights.token_types.defined() ||
                        front.options.types_from_tokens(),
                    "[EmbeddingFront] this front has no token types. Got token_type_ids ",
                    inputs.token_type_ids().sizes());
  TORCH_CHECK_VALUE(!inputs.task_type_ids().defined() || front.weights.task_types.defined(),
                    "[EmbeddingFront] this front has no task types. Got task_type_ids ",
                    inputs.task_type_ids().sizes());
  TORCH_CHECK_VALUE(inputs.offset() >= 0, "[EmbeddingFront] offset must not be negative. Got ",
                    inputs.offset());
  const bool given = inputs.position_ids().defined();
  TORCH_CHECK_VALUE(!given || front.weights.positions.defined(),
                    "[EmbeddingFront] this front has no positions. Got position_ids ",
                    inputs.position_ids().sizes());
  const PositionIds rule = front.options.position_ids();
  TORCH_CHECK_VALUE(inputs.offset() == 0 || (!given && rule != PositionIds::FromIds),
                    "[EmbeddingFront] an offset and ",
                    given ? "position_ids" : "position ids from the ids",
                    " exclude each other. Got ", inputs.offset());
}

[[noreturn]] void refuse_length(const Front& front, int64_t tokens, int64_t offset) {
  TORCH_CHECK_INDEX(false, "[EmbeddingFront] the table of positions `",
                    front.options.names().positions, "` holds ", front.max_tokens(),
                    " tokens. Got ", tokens,
                    offset == 0 ? c10::str("") : c10::str(" after ", offset, " others"));
  std::abort();  // not reached
}

// Padding takes no position, so a sequence that is longer than the table may fit it.
// Checked on the CPU only, since a look-up elsewhere must not wait for the device.
torch::Tensor fitting(const Front& front, const torch::Tensor& ids, const torch::Tensor& rows,
                      int64_t offset) {
  const int64_t most = front.max_tokens() - offset;
  if (ids.sizes().back() > most && torch_internals::is_plain(rows) && rows.numel() > 0) {
    const int64_t last = front.weights.positions.size(0) - 1;
    const int64_t row = rows.max().item<int64_t>();
    if (row > last) refuse_length(front, row - last + most, offset);
  }
  return rows;
}

// first, first + 1, ... repeated for each sequence, so that the gradients of the sequences are
// summed one after the other.
torch::Tensor expanded_arange(const torch::Tensor& ids, int64_t first) {
  const int64_t length = ids.sizes().back();
  const torch::Tensor row = at::arange(first, first + length, ids.options().dtype(at::kLong));
  return ids.dim() == 2 ? row.unsqueeze(0).expand(ids.sizes()) : row;
}

torch::Tensor rows_from_mask(const Front& front, const torch::Tensor& ids,
                             const torch::Tensor& mask, int64_t offset) {
  const int64_t length = ids.sizes().back(), columns = offset + length;
  at::DimVector wanted(ids.sizes());
  wanted.back() = columns;
  TORCH_CHECK_VALUE(mask.sizes() == wanted, "[EmbeddingFront] attention_mask must be ",
                    at::IntArrayRef(wanted), ", the ids after ", offset, " tokens. Got ",
                    mask.sizes());
  TORCH_CHECK_TYPE(!mask.is_complex(),
                   "[EmbeddingFront] attention_mask must be boolean or numbers. Got ",
                   mask.scalar_type());
  const int64_t first = first_position_row(front.options);
  const torch::Tensor rows =
      positions_from_mask(mask.is_floating_point() ? mask.ne(0) : mask, first - 1, first);
  return fitting(front, ids, offset == 0 ? rows : rows.narrow(-1, offset, length), offset);
}

// Sets the rows of the table of positions.
void set_positions(const Front& front, const torch::Tensor& ids, const EmbeddingFrontInputs& inputs,
                   functional::EmbeddingFrontFuncOptions& how) {
  const EmbeddingFrontOptions& options = front.options;
  if (!front.weights.positions.defined()) return;
  if (inputs.position_ids().defined()) {
    how.position_ids(shifted_positions(kGivenPositions, inputs.position_ids(),
                                       options.position_offset(), front.weights.positions.size(0)));
    return;
  }
  const bool from_mask =
      options.position_ids() == PositionIds::FromMask && inputs.attention_mask().defined();
  if (options.position_ids() == PositionIds::FromIds) {
    how.position_ids(fitting(front, ids, positions_from_ids(ids, *options.padding_idx()), 0));
    return;
  }
  if (from_mask) {
    how.position_ids(rows_from_mask(front, ids, inputs.attention_mask(), inputs.offset()));
    return;
  }
  const int64_t length = ids.sizes().back();
  if (length > front.max_tokens() - inputs.offset()) refuse_length(front, length, inputs.offset());
  const int64_t first = options.position_offset() + options.first_position() + inputs.offset();
  const bool expands = options.position_ids() != PositionIds::Arange &&
                       torch_internals::is_recorded(front.weights.positions);
  if (expands) {
    how.position_ids(expanded_arange(ids, first));
  } else {
    how.offset(first);
  }
}

}  // namespace

torch::Tensor shifted_positions(const functional::LookupNames& names,
                                const torch::Tensor& position_ids, int64_t offset, int64_t rows) {
  const bool integers = at::isIntegralType(position_ids.scalar_type(), /*includeBool=*/false);
  if (offset == 0 || !integers) return position_ids;  // the look-up checks them
  if (torch_internals::is_plain(position_ids))
    functional::check_indices(names, position_ids, rows - offset);
  return position_ids.to(at::kLong) + offset;
}

functional::EmbeddingFrontWeights front_weights(const EmbeddingFrontImpl& front) {
  functional::EmbeddingFrontWeights weights;
  weights.tokens = front.tokens->weight;
  if (front.positions) weights.positions = front.positions->weight;
  if (front.token_types) weights.token_types = front.token_types->weight;
  if (front.task_types) weights.task_types = front.task_types->weight;
  if (front.norm) {
    weights.norm_weight = front.norm->weight;
    weights.norm_bias = front.norm->bias;
  }
  if (front.projection) {
    weights.projection_weight = front.projection->weight;
    weights.projection_bias = front.projection->bias;
  }
  return weights;
}

int64_t first_position_row(const EmbeddingFrontOptions& options) {
  if (options.position_ids() == PositionIds::FromIds) return *options.padding_idx() + 1;
  return options.position_offset() + options.first_position();
}

int64_t front_max_tokens(const EmbeddingFrontOptions& options, const torch::Tensor& positions) {
  if (!positions.defined()) return std::numeric_limits<int64_t>::max();
  return positions.size(0) - first_position_row(options);
}

functional::EmbeddingFrontFuncOptions front_func_options(
    const EmbeddingFrontOptions& options, const functional::EmbeddingFrontWeights& weights,
    const torch::Tensor& ids, const EmbeddingFrontInputs& inputs) {
  const Front front = {options, weights};
  check_front_inputs(front, ids, inputs);
  functional::EmbeddingFrontFuncOptions how;
  how.token_type_ids(inputs.token_type_ids())
      .task_type_ids(inputs.task_type_ids())
      .types_from_tokens(options.types_from_tokens())
      .order(options.order())
      .norm(options.norm())
      .layer_norm_eps(options.layer_norm_eps())
      .projection(options.projection())
      .scale(options.scale())
      .scale_rounding(options.scale_rounding())
      .padding_idx(options.padding_idx())
      .position_padding_idx(options.position_padding_idx())
      .type_padding_idx(options.type_padding_idx());
  set_positions(front, ids, inputs, how);
  return how;
}

}  // namespace posenc
