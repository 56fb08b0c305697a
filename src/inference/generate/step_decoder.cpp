// posenc-budget: one step of a search: its cache, its masks, its attentions

#include "inference/generate/step_decoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "core/torch_internals/fresh_memory.h"
#include "kernels/inference.h"
#include "transformer/functional/attention_weights.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kFirstDistances = 64;

}  // namespace

StepDecoder::StepDecoder(const TransformerModel& model, const Memory& memory, const ScoreMask& mask,
                         int64_t rows_per_source, int64_t capacity)
    : model_(model),
      rows_(memory.packing.batch * rows_per_source),
      capacity_(capacity),
      slots_(2 * model.decoder.sizes.kv_width() *
             static_cast<int64_t>(model.decoder.layers.size())),
      tokens_(rows_),
      packed_positions_(memory.packing.positions),
      source_length_(memory.packing.length),
      first_(memory.packing.first),
      lengths_(memory.packing.lengths),
      is_causal_(mask.is_causal) {
  const DecoderStack& stack = model.decoder;
  for (int64_t row = 0; row < rows_; ++row) source_.push_back(row / rows_per_source);
  const auto room = [&](int64_t width) { return at::empty({rows_, width}, at::kFloat); };
  input_ = room(stack.width);
  projected_ = room(stack.sizes.width());
  attended_ = room(stack.sizes.query_width());
  query_ = room(stack.sizes.query_width());
  logits_ = room(model.final_layer.out());
  input_converted_ =
      at::empty({ConvertedRows::floats(stack.row_format(), rows_, stack.width)}, at::kFloat);
  if (mask.bias.defined())
    bias_ = mask.bias.expand(
        {memory.packing.batch, stack.heads, mask.bias.size(2), memory.packing.length});
  if (mask.by_distance.defined()) {
    memory_distances_ = mask.by_distance.flip(1);
    kept_positions_ = memory.packing.kept_positions().defined()
                          ? memory.packing.kept_positions().flatten()
                          : at::Tensor();
  }
  project_memory(memory);
}

void StepDecoder::project_memory(const Memory& memory) {
  const int64_t rows = memory.packing.rows;
  at::Tensor converted;
  const Stream read = memory_stream(model_.decoder, memory.rows, converted);
  memory_ = torch_internals::fresh_output({rows, slots_.stride()}, at::kFloat);
  float* to = memory_.data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) memory_tokens_.push_back(to + row * slots_.stride());
  for (const DecoderLayer& layer : model_.decoder.layers) {
    by_rows(rows, [&](int64_t begin, int64_t end) {
      const Stream part = read.part(begin, end);
      project(part, layer.memory, part.x, to + begin * slots_.stride(), slots_.stride());
    });
    to += 2 * model_.decoder.sizes.kv_width();
  }
}

void StepDecoder::select(const torch::Tensor& rows) {
  const auto* const from = rows.const_data_ptr<int64_t>();
  rows_ = rows.size(0);
  std::vector<int64_t> source;
  for (int64_t row = 0; row < rows_; ++row) source.push_back(source_[from[row]]);
  tokens_.select(from, rows_);
  source_ = std::move(source);
}

// Takes room for this step's tokens, one per row, and collects those that each row sees, with its
// new token last.
void StepDecoder::take_slots() {
  float* slot = slots_.take(rows_, capacity_ - length_);
  new_tokens_.clear();
  visible_own_.clear();
  visible_memory_.clear();
  for (int64_t row = 0; row < rows_; ++row, slot += slots_.stride()) {
    auto& tokens = tokens_.of(row);
    tokens.push_back(slot);
    new_tokens_.push_back(slot);
    visible_own_.add(tokens.data(), length_ + 1);
    const int64_t source = source_[row], length = lengths_[source];
    visible_memory_.add(memory_tokens_.data() + first_[source],
                        is_causal_ ? std::min(length, length_ + 1) : length);
  }
}

// Computes the relative biases of twice as many distances where this step's token needs more: a
// model without positions may have a capacity that no output comes near to.
void StepDecoder::extend_relative() {
  const auto& biases = model_.decoder.relative_biases;
  const auto& alibi = model_.decoder.alibi;
  if ((biases.empty() && !alibi) || length_ < relative_length_) return;
  relative_length_ = std::min(capacity_, std::max(kFirstDistances, 2 * relative_length_));
  relative_.clear();
  if (alibi) alibi_ = alibi->before(relative_length_);
  for (const RelativeBias& bias : biases) {
    relative_.push_back(bias.before(relative_length_));
    if (alibi) relative_.back().add_(alibi_);
  }
}

// What is added by the distance of the memory's keys from token `query`, (B|1, H, S).
at::Tensor StepDecoder::memory_distance_bias(int64_t query) const {
  const int64_t keys = memory_distances_.size(1) - capacity_ + 1;
  const at::Tensor of_positions = memory_distances_.narrow(1, capacity_ - 1 - query, keys);
  if (!kept_positions_.defined()) return of_positions.unsqueeze(0);
  return of_positions.index_select(1, kept_positions_)
      .view({of_positions.size(0), -1, keys})
      .transpose(0, 1)
      .contiguous();
}

// Bias of token `query` for the memory's keys, (rows, H, S), or undefined.
at::Tensor StepDecoder::memory_bias(int64_t query) const {
  at::Tensor bias;
  if (memory_distances_.defined()) bias = memory_distance_bias(query);
  if (bias_.defined()) {
    const at::Tensor own = bias_.select(2, bias_.size(2) == 1 ? 0 : query);
    bias = bias.defined() ? own + bias : own;
  }
  if (!bias.defined()) return {};
  if (bias.size(0) == 1) return bias.expand({rows_, bias.size(1), bias.size(2)});
  return bias.index_select(0, at::tensor(source_, at::kLong));
}

// What the two attentions of a layer have in common.
kernel::AttentionRequest StepDecoder::attention(size_t layer, const float* query,
                                                int64_t stride) const {
  const HeadSizes& sizes = model_.decoder.sizes;
  kernel::AttentionRequest request = {};
  request.query = query;
  request.query_stride = stride;
  request.heads = sizes.heads;
  request.group = sizes.heads / sizes.kv_heads;
  request.width = sizes.head_dim;
  request.key = 2 * sizes.kv_width() * static_cast<int64_t>(layer);
  request.value = request.key + sizes.kv_width();
  request.out = attended_.data_ptr<float>();
  request.out_stride = sizes.query_width();
  return request;
}

// The new token of each row sees itself and all before it, by the last entries of a relative bias.
void StepDecoder::attend_own(size_t layer, const float* query, int64_t stride) const {
  const DecoderLayer& own = model_.decoder.layers[layer];
  kernel::AttentionRequest request = attention(layer, query, stride);
  request.scale = own.scoring.scale;
  request.softcap = own.scoring.softcap;
  const at::Tensor& bias = own.relative ? relative_[*own.relative] : alibi_;
  if (bias.defined()) {
    request.bias = bias.const_data_ptr<float>() + relative_length_ - 1 - length_;
    request.bias_head_stride = bias.stride(0);
  }
  attend_tokens(request, visible_own_);
}

void StepDecoder::attend_memory(size_t layer, const float* query, const at::Tensor& bias) const {
  kernel::AttentionRequest request = attention(layer, query, model_.decoder.sizes.query_width());
  request.scale = model_.decoder.layers[layer].cross_scoring.scale;
  if (bias.defined()) {
    request.bias = bias.const_data_ptr<float>();
    request.bias_row_stride = bias.stride(0);
    request.bias_head_stride = bias.stride(1);
  }
  attend_tokens(request, visible_memory_);
}

// From the queries that the last step left, source by source. Only few searches ask for it, so the
// kernel does not keep its weights.
torch::Tensor StepDecoder::attention() const {
  const DecoderStack& stack = model_.decoder;
  const HeadSizes& sizes = stack.sizes;
  const int64_t kv_width = sizes.kv_width();
  const int64_t key = 2 * kv_width * (static_cast<int64_t>(stack.layers.size()) - 1);
  const at::Tensor bias = memory_bias(length_ - 1);
  at::Tensor all = at::zeros({rows_, source_length_}, at::kFloat);
  for (int64_t row = 0, next = 0; row < rows_; row = next) {
    while (next < rows_ && source_[next] == source_[row]) ++next;
    const int64_t source = source_[row], rows = next - row, keys = visible_memory_.counts[row];
    if (keys == 0) continue;
    const at::Tensor query =
        query_.narrow(0, row, rows).view({1, rows, sizes.heads, sizes.head_dim}).transpose(1, 2);
    const at::Tensor seen = memory_.narrow(0, first_[source], keys)
                                .narrow(1, key, kv_width)
                                .unflatten(1, {sizes.kv_heads, sizes.head_dim})
                                .transpose(0, 1)
                                .unsqueeze(0);
    ScoreMask mask;
    if (bias.defined())
      mask.bias = bias.narrow(0, row, rows).narrow(2, 0, keys).transpose(0, 1).unsqueeze(0);
    const at::Tensor weights =
        functional::attention_weights(query, seen, mask, stack.layers.back().cross_scoring.scale)
            .mean(1)
            .squeeze(0);
    at::Tensor own = all.narrow(0, row, rows);
    if (packed_positions_.empty()) {
      own.narrow(1, 0, keys).copy_(weights);
    } else {
      const auto begin = packed_positions_.begin() + first_[source];
      const at::Tensor positions = at::tensor(std::vector<int64_t>(begin, begin + keys), at::kLong);
      own.index_copy_(1, positions - source * source_length_, weights);
    }
  }
  return all;
}

torch::Tensor StepDecoder::step(const torch::Tensor& tokens) {
  TORCH_CHECK_VALUE(length_ < capacity_, "[generate] at most ", capacity_, " tokens. Got token ",
                    length_ + 1);
  const DecoderStack& stack = model_.decoder;
  const int64_t qkv_width = stack.sizes.width(), width = stack.sizes.query_width();
  const int64_t kv_width = 2 * stack.sizes.kv_width();
  const StepPositions where =
      std::exchange(positions_, std::nullopt).value_or(StepPositions{{}, length_});
  const at::Tensor x = model_.tgt_embedding(tokens, where.past, where.ids);  // (R, 1, D)
  Stream stream = stack.stream(x.data_ptr<float>(), input_.data_ptr<float>(), rows_);
  stream.input_converted = {stack.row_format(), input_converted_.data_ptr<float>(), rows_,
                            stack.width};
  float* const qkv = projected_.data_ptr<float>();
  float* const query = query_.data_ptr<float>();
  const float* const attended = attended_.const_data_ptr<float>();
  const at::Tensor bias = memory_bias(length_);
  extend_relative();
  take_slots();
  int64_t keys = 0;  // where a token has those of a layer
  normalise(stream, stack.entry);
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const DecoderLayer& layer = stack.layers[i];
    project(stream, layer.in_proj, stream.input, qkv, qkv_width);
    keep_rows(qkv + width, qkv_width, new_tokens_, keys, kv_width);
    keys += kv_width;
    attend_own(i, qkv, qkv_width);
    add_projected(stream, layer.out_proj, attended, width, {}, layer.after_attention);
    project(stream, layer.query, stream.input, query, width);
    attend_memory(i, query, bias);
    add_projected(stream, layer.cross_out, attended, width, {}, layer.after_cross);
    feed_forward(stream, layer.feed_forward, stream.input, {}, layer.after_feed_forward);
  }
  if (stack.last) normalise(stream, stack.last);
  ++length_;
  const at::Tensor logits = logits_.narrow(0, 0, rows_);
  project(stream, model_.final_layer, stack.result(stream), logits.data_ptr<float>(),
          logits.size(1));
  return logits;
}

}  // namespace posenc::inference
