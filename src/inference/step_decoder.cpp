#include "inference/step_decoder.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "inference/scratch.h"
#include "kernels/inference/kernels.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kGrainOfAttention = 1 << 15;

// Rows (rows, H, Dh), `stride` floats apart, to places of a cache (H, capacity, Dh).
void copy_heads(const float* from, int64_t stride, int64_t rows, const int32_t* places,
                const at::Tensor& cache) {
  const int64_t heads = cache.size(0), capacity = cache.size(1), width = cache.size(2);
  float* const to = cache.data_ptr<float>();
  at::parallel_for(0, rows, std::max<int64_t>(1, kGrainOfAttention / stride),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row)
                       for (int64_t head = 0; head < heads; ++head)
                         std::memcpy(to + (head * capacity + places[row]) * width,
                                     from + row * stride + head * width,
                                     sizeof(float) * static_cast<size_t>(width));
                   });
}

TokenCache make_cache(const DecoderStack& stack, int64_t tokens) {
  const auto room = [&] { return at::empty({stack.heads, tokens, stack.width / stack.heads}); };
  return {room(), room()};
}

}  // namespace

StepDecoder::StepDecoder(const FrozenTransformer::Impl& model, const Memory& memory,
                         int64_t rows_per_source, int64_t capacity)
    : model_(model),
      rows_(memory.packing.batch * rows_per_source),
      capacity_(capacity),
      memory_places_(static_cast<size_t>(memory.packing.rows)),
      first_(memory.packing.first),
      lengths_(memory.packing.lengths) {
  TORCH_CHECK_VALUE(rows_ * capacity <= INT32_MAX && memory.packing.rows <= INT32_MAX,
                    "[generate] sequences times max_length must be below 2^31. Got ", rows_,
                    " times ", capacity);
  const DecoderStack& stack = model.decoder;
  places_.resize(static_cast<size_t>(rows_ * capacity));
  next_.resize(places_.size());
  for (int64_t row = 0; row < rows_; ++row) source_.push_back(row / rows_per_source);
  for (size_t i = 0; i < stack.layers.size(); ++i)
    own_.push_back(make_cache(stack, rows_ * capacity));
  const auto room = [&](int64_t width) { return at::empty({rows_, width}); };
  input_ = room(stack.width);
  projected_ = room(3 * stack.width);
  attended_ = room(stack.width);
  query_ = room(stack.width);
  logits_ = room(model.final_layer.out());
  remember(memory);
}

void StepDecoder::remember(const Memory& memory) {
  const DecoderStack& stack = model_.decoder;
  const int64_t rows = memory.packing.rows, width = stack.width;
  const Rows of = rows_case(rows);
  std::iota(memory_places_.begin(), memory_places_.end(), 0);
  const at::Tensor both = at::empty({rows, 2 * width});
  float* const to = both.data_ptr<float>();
  for (const DecoderLayer& layer : stack.layers) {
    memory_.push_back(make_cache(stack, rows));
    by_rows(rows, [&](int64_t begin, int64_t end) {
      layer.memory.run(memory.rows.const_data_ptr<float>() + begin * width, end - begin,
                       to + begin * 2 * width, of);
    });
    copy_heads(to, 2 * width, rows, memory_places_.data(), memory_.back().keys);
    copy_heads(to + width, 2 * width, rows, memory_places_.data(), memory_.back().values);
  }
  if (!memory.mask.bias.defined()) return;
  const auto source = at::tensor(source_);
  memory_bias_ = memory.mask.bias
                     .select(2, 0)  // (B|1, H|1, S|1)
                     .expand({memory.packing.batch, stack.heads, memory.packing.length})
                     .index_select(0, source);
}

void StepDecoder::select(const torch::Tensor& rows) {
  const auto* const from = rows.const_data_ptr<int64_t>();
  rows_ = rows.size(0);
  std::vector<int64_t> source;
  for (int64_t row = 0; row < rows_; ++row) {
    source.push_back(source_[from[row]]);
    std::copy_n(places_.begin() + from[row] * capacity_, length_, next_.begin() + row * capacity_);
  }
  places_.swap(next_);
  source_ = std::move(source);
  if (memory_bias_.defined()) memory_bias_ = memory_bias_.index_select(0, rows);
}

// What each row sees in this step: its token goes to a place that no row has used.
void StepDecoder::see() {
  own_seen_ = {};
  memory_seen_ = {};
  for (int64_t row = 0; row < rows_; ++row) {
    int32_t* const places = places_.data() + row * capacity_;
    places[length_] = static_cast<int32_t>(row * capacity_ + length_);
    own_seen_.places.push_back(places);
    own_seen_.counts.push_back(length_ + 1);
    memory_seen_.places.push_back(memory_places_.data() + first_[source_[row]]);
    memory_seen_.counts.push_back(lengths_[source_[row]]);
  }
}

void StepDecoder::attend(const TokenCache& cache, const Seen& seen, const float* query,
                         int64_t stride, const float* bias) const {
  kernel::Attention request;
  request.query = query;
  request.query_stride = stride;
  request.heads = cache.keys.size(0);
  request.capacity = cache.keys.size(1);
  request.width = cache.keys.size(2);
  request.keys = cache.keys.const_data_ptr<float>();
  request.values = cache.values.const_data_ptr<float>();
  request.tokens = seen.places.data();
  request.counts = seen.counts.data();
  request.scale = 1.0F / std::sqrt(static_cast<float>(request.width));
  request.bias = bias;
  if (bias != nullptr) {
    request.bias_row_stride = memory_bias_.stride(0);
    request.bias_head_stride = memory_bias_.stride(1);
  }
  request.out = attended_.data_ptr<float>();
  request.out_stride = model_.decoder.width;
  const int64_t most = *std::max_element(seen.counts.begin(), seen.counts.end());
  const int64_t grain = kGrainOfAttention / std::max<int64_t>(1, 2 * most * request.width);
  const auto& kernels = kernel::kernels().attention;
  at::parallel_for(0, rows_ * request.heads, std::max<int64_t>(1, grain),
                   [&](int64_t begin, int64_t end) {
                     kernels.attend(request, begin, end, scratch(Scratch::Scores, most + 16));
                   });
}

torch::Tensor StepDecoder::step(const torch::Tensor& tokens) {
  TORCH_CHECK_VALUE(length_ < capacity_, "[generate] at most ", capacity_, " tokens. Got token ",
                    length_ + 1);
  const DecoderStack& stack = model_.decoder;
  const int64_t width = stack.width;
  const at::Tensor x = model_.tgt_embedding(tokens, length_);  // (R, 1, D)
  const Stream stream = stack.stream(x.data_ptr<float>(), input_.data_ptr<float>(), rows_);
  float* const qkv = projected_.data_ptr<float>();
  float* const query = query_.data_ptr<float>();
  const float* const attended = attended_.const_data_ptr<float>();
  const float* const bias = memory_bias_.defined() ? memory_bias_.const_data_ptr<float>() : nullptr;
  see();
  std::vector<int32_t> new_places;
  for (const int32_t* places : own_seen_.places) new_places.push_back(places[length_]);
  normalise(stream, stack.entry);
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const DecoderLayer& layer = stack.layers[i];
    layer.in_proj.run(stream.input, rows_, qkv, stream.of);
    copy_heads(qkv + width, 3 * width, rows_, new_places.data(), own_[i].keys);
    copy_heads(qkv + 2 * width, 3 * width, rows_, new_places.data(), own_[i].values);
    attend(own_[i], own_seen_, qkv, 3 * width, nullptr);
    add_projected(stream, layer.out_proj, attended, width, layer.after_attention);
    layer.query.run(stream.input, rows_, query, stream.of);
    attend(memory_[i], memory_seen_, query, width, bias);
    add_projected(stream, layer.cross_out, attended, width, layer.after_cross);
    feed_forward(stream, layer.feed_forward, layer.after_feed_forward);
  }
  normalise(stream, stack.last);
  ++length_;
  const at::Tensor logits = logits_.narrow(0, 0, rows_);
  model_.final_layer.run(stack.result(stream), rows_, logits.data_ptr<float>(), stream.of);
  return logits;
}

}  // namespace posenc::inference
