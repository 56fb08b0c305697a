#include "posenc/models/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ostream>

#include "core/print_fields.h"
#include "models/decoder/parts.h"
#include "models/decoder/token_runs.h"
#include "models/encoder/parts.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

constexpr const char* kDecoder = "Decoder";

void check_decoder(const DecoderOptions& options) {
  const EncoderOptions& model = options.model();
  const auto& tokens = model.embeddings();
  TORCH_CHECK_VALUE(tokens && !model.transformer(),
                    "[Decoder] the model must be of token ids, and "
                    "without an encoder. Got another");
  TORCH_CHECK_VALUE(model.causal(), "[Decoder] the model must be causal(true). Got causal(false)");
  TORCH_CHECK_VALUE(model.pooling() == encoder::Pooling::None,
                    "[Decoder] the model must have Pooling::None. Got another");
  TORCH_CHECK_VALUE(!sees_padding(model),
                    "[Decoder] the layers must be of Mixing::Attention, without a conformer, and "
                    "the embeddings without trigram_input. Got others");
  const bool reads_padding = model.zero_padding() || model.masks_padding() ||
                             model.token_dropout_id() || model.document_bias();
  TORCH_CHECK_VALUE(!reads_padding,
                    "[Decoder] the model must be without zero_padding, masks_padding, "
                    "token_dropout_id and document_bias. Got one of them");
  const int64_t width = tokens->embedding_dim().value_or(tokens->d_model());
  TORCH_CHECK_VALUE(!options.tied() || width == output_width(model),
                    "[Decoder] tied(true) must be with a table of tokens as wide as the last "
                    "hidden state, ",
                    output_width(model), ". Got ", width);
  TORCH_CHECK_VALUE(std::isfinite(options.logit_scale()) && options.logit_scale() != 0.0,
                    "[Decoder] logit_scale must be finite and not 0. Got ", options.logit_scale());
  TORCH_CHECK_VALUE(!options.logit_softcap() || *options.logit_softcap() > 0.0,
                    "[Decoder] logit_softcap must be positive. Got ",
                    options.logit_softcap().value_or(0.0));
  for (const auto& most : {options.max_positions(), options.max_tokens()})
    TORCH_CHECK_VALUE(!most || *most > 0,
                      "[Decoder] max_positions and max_tokens must be positive. "
                      "Got ",
                      most.value_or(0));
}

int64_t vocab_of(const DecoderOptions& options) {
  return options.model().embeddings()->vocab_size();
}

}  // namespace

at::Tensor scaled_logits(const DecoderOptions& options, const at::Tensor& products) {
  const double scale = options.logit_scale();
  const at::Tensor logits = scale == 1.0 ? products : products * scale;
  const auto& cap = options.logit_softcap();
  return cap ? at::tanh(logits / *cap) * *cap : logits;
}

bool depends_on_length(const EncoderOptions& options) {
  return !rotaries_by_length(options).empty();
}

int64_t most_tokens(const DecoderOptions& options) {
  const EncoderEmbeddingsOptions& tokens = *options.model().embeddings();
  const int64_t most = options.max_tokens().value_or(std::numeric_limits<int64_t>::max());
  if (tokens.position_ids() == embeddings::PositionIds::None) return most;
  return std::min(most,
                  tokens.position_rows() - tokens.position_offset() - tokens.first_position());
}

DecoderImpl::DecoderImpl(DecoderOptions options_) : options(std::move(options_)) {
  DecoderImpl::reset();
}

void DecoderImpl::reset() {
  check_decoder(options);
  model = register_module("model", Encoder(options.model()));
  lm_head = register_module("lm_head", OutputProjection(output_width(options.model()),
                                                        vocab_of(options), options.head_bias()));
  tie();
}

void DecoderImpl::tie() {
  if (options.tied()) lm_head->tie(model->embeddings->tokens);
}

void DecoderImpl::reset_parameters() {
  model->reset_parameters();
  lm_head->reset_parameters();
}

void DecoderImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, kDecoder, options, DecoderOptions(options.model()));
}

std::shared_ptr<torch::nn::Module> DecoderImpl::clone(
    const std::optional<torch::Device>& device) const {
  auto copy = Cloneable<DecoderImpl>::clone(device);
  copy->as<DecoderImpl>()->tie();  // its output layer still refers to this model's table
  return copy;
}

std::vector<TiedName> DecoderImpl::tied_names() const {
  if (!options.tied()) return {};
  return {{"lm_head.weight",
           "model.embeddings." + options.model().embeddings()->names().tokens + ".weight"}};
}

int64_t DecoderImpl::most_tokens() const { return posenc::most_tokens(options); }

namespace {

// The length that sequences of about this length are computed in: less than a quarter of it, or 16
// tokens, is padding.
int64_t near_length(int64_t length) {
  int64_t step = 16;
  while (step * 8 < length) step *= 2;
  return (length + step - 1) / step * step;
}

}  // namespace

// The result for all sequences, (R, M, ...), each of which is computed as if it were alone: those
// of a length apart where it counts, and those of like lengths where rows are packed.
EncoderOutput DecoderImpl::hidden_rows(const TokenRuns& runs, bool output_hidden_states) {
  const EncoderInputs inputs = EncoderInputs().output_hidden_states(output_hidden_states);
  const int64_t longest = runs.ids.size(1);
  const bool is_exact = depends_on_length(options.model());
  std::map<int64_t, std::vector<int64_t>> by_length;
  for (std::size_t row = 0; row < runs.lengths.size(); ++row) {
    const int64_t own = runs.lengths[row];
    by_length[is_exact ? own : std::min(near_length(own), longest)].push_back(
        static_cast<int64_t>(row));
  }
  if (by_length.size() < 2 || !(is_exact || runs.are_packed))
    return model->forward(runs.ids, inputs);
  std::vector<EncoderOutput> parts;
  std::vector<int64_t> place(runs.lengths.size());  // of each row among those of all parts
  int64_t next = 0;
  for (const auto& [length, rows] : by_length) {
    for (const int64_t row : rows) place[static_cast<std::size_t>(row)] = next++;
    const at::Tensor own = at::tensor(rows, at::kLong).to(runs.ids.device());
    parts.push_back(model->forward(runs.ids.index_select(0, own).narrow(1, 0, length), inputs));
  }
  const at::Tensor order = at::tensor(place, at::kLong).to(runs.ids.device());
  const auto joined = [&](const auto& of) {
    std::vector<at::Tensor> rows;
    for (const EncoderOutput& part : parts)
      rows.push_back(at::constant_pad_nd(of(part), {0, 0, 0, longest - of(part).size(1)}));
    return at::cat(rows).index_select(0, order);
  };
  EncoderOutput all;
  all.last_hidden_state = joined([](const EncoderOutput& part) { return part.last_hidden_state; });
  for (std::size_t i = 0; i < parts.front().hidden_states.size(); ++i)
    all.hidden_states.push_back(
        joined([i](const EncoderOutput& part) { return part.hidden_states[i]; }));
  return all;
}

DecoderOutput DecoderImpl::forward(const torch::Tensor& ids, const DecoderInputs& inputs) {
  const TokenRuns runs = token_runs(kDecoder, ids, inputs, vocab_of(options));
  const EncoderOutput found = hidden_rows(runs, inputs.output_hidden_states());
  const torch::Tensor& hidden = found.last_hidden_state;
  DecoderOutput out;
  out.logits = scaled_logits(
      options, lm_head->forward(inputs.last_logits_only() ? runs.last(hidden) : hidden));
  if (!inputs.last_logits_only()) out.logits = runs.in_batch(out.logits);
  out.last_hidden_state = runs.in_batch(hidden);
  for (const torch::Tensor& one : found.hidden_states)
    out.hidden_states.push_back(runs.in_batch(one));
  return out;
}

std::vector<KeyValueCache> DecoderImpl::make_caches(int64_t batch, int64_t capacity) const {
  return model->encoder->make_caches(batch, capacity);
}

// Padding of a row is before its tokens, so columns between two tokens are tokens.
DecoderOutput DecoderImpl::step(const torch::Tensor& ids, std::vector<KeyValueCache>& caches,
                                const DecoderInputs& inputs) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(!inputs.position_ids().defined(),
                    "[Decoder] position_ids are not for step(): they are of whole sequences");
  TORCH_CHECK_VALUE(!caches.empty(),
                    "[Decoder] caches must be those of make_caches(). Got no caches");
  TORCH_CHECK_VALUE(ids.defined() && ids.dim() == 2, "[Decoder] ids must be (B, t). Got ",
                    ids.defined() ? c10::str(ids.sizes()) : "an undefined tensor");
  const int64_t past = caches.front().length(), count = ids.size(1);
  torch::Tensor mask = inputs.attention_mask(), own;
  if (mask.defined()) {
    mask = checked_mask(kDecoder, mask, {ids.size(0), past + count});
    own = mask.narrow(1, past, count);
  }
  check_ids(kDecoder, ids, own, vocab_of(options));
  const EncoderOutput found = model->step(
      own.defined() ? ids.masked_fill(own.logical_not(), 0) : ids, caches,
      EncoderInputs().attention_mask(mask).output_hidden_states(inputs.output_hidden_states()));
  DecoderOutput out;
  out.last_hidden_state = found.last_hidden_state;
  out.hidden_states = found.hidden_states;
  out.logits =
      scaled_logits(options, lm_head->forward(inputs.last_logits_only()
                                                  ? found.last_hidden_state.narrow(1, count - 1, 1)
                                                  : found.last_hidden_state));
  return out;
}

}  // namespace posenc
