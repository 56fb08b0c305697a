#include "positions/nn/encoder_embeddings_internals.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <limits>

#include "core/torch_internals/shortcut.h"
#include "posenc/positions/sinusoid/positions.h"

namespace posenc {
namespace {

using embeddings::PositionIds;

constexpr functional::LookupNames kGivenPositions = {"EncoderEmbeddings", "position id",
                                                     "the number of positions"};

// What the embeddings compute with: their options and weights.
struct Embeddings {
  const EncoderEmbeddingsOptions& options;
  const functional::EncoderEmbeddingsWeights& weights;

  int64_t max_tokens() const { return embeddings_max_tokens(options, weights.positions); }
};

void check_embeddings_inputs(const Embeddings& embeddings, const torch::Tensor& ids,
                             const EncoderEmbeddingsInputs& inputs) {
  TORCH_CHECK_VALUE(ids.defined() && (ids.dim() == 1 || ids.dim() == 2),
                    "[EncoderEmbeddings] ids must be (B, L) or (L). Got ",
                    ids.defined() ? c10::str(ids.sizes()) : "no tensor");
  TORCH_CHECK_VALUE(inputs.offset() >= 0, "[EncoderEmbeddings] offset must not be negative. Got ",
                    inputs.offset());
  const bool given = inputs.position_ids().defined();
  const PositionIds rule = embeddings.options.position_ids();
  TORCH_CHECK_VALUE(inputs.offset() == 0 || (!given && rule != PositionIds::FromIds),
                    "[EncoderEmbeddings] an offset and ",
                    given ? "position_ids" : "position ids from the ids",
                    " exclude each other. Got ", inputs.offset());
}

[[noreturn]] void refuse_length(const Embeddings& embeddings, int64_t tokens, int64_t offset) {
  TORCH_CHECK_INDEX(false, "[EncoderEmbeddings] the table of positions `",
                    embeddings.options.names().positions, "` holds ", embeddings.max_tokens(),
                    " tokens. Got ", tokens,
                    offset == 0 ? c10::str("") : c10::str(" after ", offset, " others"));
  std::abort();  // not reached
}

// Padding takes no position, so a sequence that is longer than the table may fit it.
// Checked on the CPU only, since a look-up elsewhere must not wait for the device.
torch::Tensor fitting(const Embeddings& embeddings, const torch::Tensor& ids,
                      const torch::Tensor& rows, int64_t offset) {
  const int64_t most = embeddings.max_tokens() - offset;
  if (ids.sizes().back() > most && torch_internals::is_plain(rows) && rows.numel() > 0) {
    const int64_t last = embeddings.weights.positions.size(0) - 1;
    const int64_t row = rows.max().item<int64_t>();
    if (row > last) refuse_length(embeddings, row - last + most, offset);
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

torch::Tensor rows_from_mask(const Embeddings& embeddings, const torch::Tensor& ids,
                             const torch::Tensor& mask, int64_t offset) {
  const int64_t length = ids.sizes().back(), columns = offset + length;
  at::DimVector expected(ids.sizes());
  expected.back() = columns;
  TORCH_CHECK_VALUE(mask.sizes() == expected, "[EncoderEmbeddings] attention_mask must be ",
                    at::IntArrayRef(expected), ", the ids after ", offset, " tokens. Got ",
                    mask.sizes());
  TORCH_CHECK_TYPE(!mask.is_complex(),
                   "[EncoderEmbeddings] attention_mask must be boolean or numbers. Got ",
                   mask.scalar_type());
  const int64_t first = first_position_row(embeddings.options);
  const torch::Tensor rows =
      positions_from_mask(mask.is_floating_point() ? mask.ne(0) : mask, first - 1, first);
  return fitting(embeddings, ids, offset == 0 ? rows : rows.narrow(-1, offset, length), offset);
}

// Sets the rows of the table of positions.
void set_positions(const Embeddings& embeddings, const torch::Tensor& ids,
                   const EncoderEmbeddingsInputs& inputs,
                   functional::EncoderEmbeddingsFuncOptions& func_options) {
  const EncoderEmbeddingsOptions& options = embeddings.options;
  if (!embeddings.weights.positions.defined()) {
    func_options.position_ids(inputs.position_ids());  // which are refused
    return;
  }
  if (inputs.position_ids().defined()) {
    func_options.position_ids(shifted_positions(kGivenPositions, inputs.position_ids(),
                                                options.position_offset(),
                                                embeddings.weights.positions.size(0)));
    return;
  }
  const bool from_mask =
      options.position_ids() == PositionIds::FromMask && inputs.attention_mask().defined();
  if (options.position_ids() == PositionIds::FromIds) {
    func_options.position_ids(
        fitting(embeddings, ids, positions_from_ids(ids, *options.padding_idx()), 0));
    return;
  }
  if (from_mask) {
    func_options.position_ids(
        rows_from_mask(embeddings, ids, inputs.attention_mask(), inputs.offset()));
    return;
  }
  const int64_t length = ids.sizes().back();
  if (length > embeddings.max_tokens() - inputs.offset())
    refuse_length(embeddings, length, inputs.offset());
  const int64_t first = options.position_offset() + options.first_position() + inputs.offset();
  const bool expands = options.position_ids() != PositionIds::Arange &&
                       torch_internals::is_recorded(embeddings.weights.positions);
  if (expands) {
    func_options.position_ids(expanded_arange(ids, first));
  } else {
    func_options.offset(first);
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

functional::EncoderEmbeddingsWeights embeddings_weights(const EncoderEmbeddingsImpl& embeddings) {
  functional::EncoderEmbeddingsWeights weights;
  weights.tokens = embeddings.tokens->weight;
  if (embeddings.positions) weights.positions = embeddings.positions->weight;
  if (embeddings.token_types) weights.token_types = embeddings.token_types->weight;
  if (embeddings.task_types) weights.task_types = embeddings.task_types->weight;
  if (embeddings.x_positions) {
    weights.x_positions = embeddings.x_positions->weight;
    weights.y_positions = embeddings.y_positions->weight;
    weights.h_positions = embeddings.h_positions->weight;
    weights.w_positions = embeddings.w_positions->weight;
  }
  if (embeddings.norm) {
    weights.norm_weight = embeddings.norm->weight;
    weights.norm_bias = embeddings.norm->bias;
  }
  if (embeddings.projection) {
    weights.projection_weight = embeddings.projection->weight;
    weights.projection_bias = embeddings.projection->bias;
  }
  return weights;
}

int64_t first_position_row(const EncoderEmbeddingsOptions& options) {
  if (options.position_ids() == PositionIds::FromIds) return *options.padding_idx() + 1;
  return options.position_offset() + options.first_position();
}

int64_t embeddings_max_tokens(const EncoderEmbeddingsOptions& options,
                              const torch::Tensor& positions) {
  if (!positions.defined()) return std::numeric_limits<int64_t>::max();
  return positions.size(0) - first_position_row(options);
}

namespace {

functional::EncoderEmbeddingsFuncOptions func_options_of(
    const EncoderEmbeddingsOptions& options, const functional::EncoderEmbeddingsWeights& weights,
    const torch::Tensor& ids, const EncoderEmbeddingsInputs& inputs) {
  const Embeddings embeddings = {options, weights};
  check_embeddings_inputs(embeddings, ids, inputs);
  functional::EncoderEmbeddingsFuncOptions func_options;
  func_options.token_type_ids(inputs.token_type_ids())
      .task_type_ids(inputs.task_type_ids())
      .bbox(inputs.bbox())
      .types_from_tokens(options.types_from_tokens())
      .order(options.order())
      .norm(options.norm())
      .layer_norm_eps(options.layer_norm_eps())
      .projection(options.projection())
      .trigram_input(options.trigram_input())
      .no_norm(options.no_norm())
      .stepwise_norm(options.stepwise_norm())
      .scale(options.scale())
      .scale_rounding(options.scale_rounding())
      .padding_idx(options.padding_idx())
      .position_padding_idx(options.position_padding_idx())
      .type_padding_idx(options.type_padding_idx());
  set_positions(embeddings, ids, inputs, func_options);
  return func_options;
}

void check_embeds(const Embeddings& embeddings, const torch::Tensor& ids,
                  const EncoderEmbeddingsInputs& inputs) {
  const torch::Tensor& embeds = inputs.inputs_embeds();
  const int64_t width = embeddings.weights.tokens.size(1);
  TORCH_CHECK_VALUE(!ids.defined(),
                    "[EncoderEmbeddings] ids must be an undefined tensor where inputs_embeds are "
                    "given. Got ",
                    ids.sizes());
  TORCH_CHECK_VALUE((embeds.dim() == 2 || embeds.dim() == 3) && embeds.size(-1) == width,
                    "[EncoderEmbeddings] inputs_embeds must be (B, L, ", width, ") or (L, ", width,
                    "). Got ", embeds.sizes());
  TORCH_CHECK_VALUE(!embeddings.options.types_from_tokens() || !inputs.token_type_ids().defined(),
                    "[EncoderEmbeddings] inputs_embeds leave no table of tokens for token_type_ids "
                    "to be rows of. Got token_type_ids ",
                    inputs.token_type_ids().sizes());
}

// Given vectors are the rows of a table of tokens of their own, in their order.
EmbeddingsCall call_of_embeds(const Embeddings& embeddings, const torch::Tensor& given_ids,
                              EncoderEmbeddingsInputs inputs) {
  check_embeds(embeddings, given_ids, inputs);
  const EncoderEmbeddingsOptions& options = embeddings.options;
  const torch::Tensor embeds = inputs.inputs_embeds();
  EmbeddingsCall call;
  call.weights = embeddings.weights;
  call.weights.tokens = embeds.reshape({-1, embeds.size(-1)});
  call.ids = at::arange(call.weights.tokens.size(0), embeds.options().dtype(at::kLong))
                 .view(embeds.sizes().slice(0, static_cast<std::size_t>(embeds.dim()) - 1));
  if (options.position_ids() == PositionIds::FromIds && !inputs.position_ids().defined()) {
    const int64_t length = call.ids.sizes().back();
    if (length > embeddings.max_tokens()) refuse_length(embeddings, length, 0);
    inputs.position_ids(expanded_arange(call.ids, first_position_row(options)));
  }
  call.options = func_options_of(options, call.weights, call.ids, inputs)
                     .scale(Scale::None)
                     .padding_idx(std::nullopt);
  return call;
}

}  // namespace

EmbeddingsCall embeddings_call(const EncoderEmbeddingsOptions& options,
                               const functional::EncoderEmbeddingsWeights& weights,
                               const torch::Tensor& ids, const EncoderEmbeddingsInputs& inputs) {
  if (inputs.inputs_embeds().defined()) return call_of_embeds({options, weights}, ids, inputs);
  return {ids, weights, func_options_of(options, weights, ids, inputs)};
}

}  // namespace posenc
