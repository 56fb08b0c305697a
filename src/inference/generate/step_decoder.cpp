// posenc-budget: one step of a search: its cache, its masks, its attentions

#include "inference/generate/step_decoder.h"

#include <ATen/TensorIndexing.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/inference.h"
#include "transformer/functional/attention_weights.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kFirstDistances = 64;

at::Tensor column(const std::vector<int64_t>& numbers) {
  return at::tensor(numbers, at::kLong).unsqueeze(1);
}

}  // namespace

StepDecoder::StepDecoder(const TransformerModel& model, const MemoryHeads& memory,
                         const ScoreMask& mask, const std::vector<int64_t>& sources,
                         int64_t rows_per_source, int64_t capacity, StepSums sums)
    : model_(model),
      memory_(memory),
      rows_(std::ssize(sources) * rows_per_source),
      rows_per_source_(rows_per_source),
      capacity_(capacity),
      sums_(sums),
      slots_(2 * model.decoder.sizes.kv_width() *
             static_cast<int64_t>(model.decoder.layers.size())),
      tokens_(rows_),
      is_causal_(mask.is_causal) {
  for (const int64_t source : sources) source_.insert(source_.end(), rows_per_source, source);
  const Packing& packing = memory.packing;
  if (mask.bias.defined())
    bias_ =
        mask.bias.expand({packing.batch, model.decoder.heads, mask.bias.size(2), packing.length});
  if (mask.by_distance.defined()) memory_distances_ = mask.by_distance.flip(1);
}

void StepDecoder::make_room(int64_t tokens) {
  if (tokens <= room_) return;
  const DecoderStack& stack = model_.decoder;
  const auto room = [&](int64_t width) { return at::empty({tokens, width}, at::kFloat); };
  input_ = room(stack.width);
  projected_ = room(stack.sizes.width());
  attended_ = room(stack.sizes.query_width());
  query_ = room(stack.sizes.query_width());
  input_converted_ =
      at::empty({ConvertedRows::floats(stack.row_format(), tokens, stack.width)}, at::kFloat);
  room_ = tokens;
}

void StepDecoder::select(const torch::Tensor& rows) {
  const auto* const from = rows.const_data_ptr<int64_t>();
  rows_ = rows.size(0);
  std::vector<int64_t> source;
  for (int64_t row = 0; row < rows_; ++row) source.push_back(source_[from[row]]);
  tokens_.select(from, rows_);
  source_ = std::move(source);
}

// Takes room for the call's tokens and collects those that each of them sees, itself the last. At
// most `calls` calls more, this one included, have as many tokens.
void StepDecoder::take_slots(int64_t calls) {
  float* slot = slots_.take(std::ssize(row_of_), calls);
  place_of_.clear();
  new_tokens_.clear();
  visible_own_.clear();
  visible_memory_.clear();
  for (const int64_t row : row_of_) {
    auto& tokens = tokens_.of(row);
    place_of_.push_back(std::ssize(tokens));
    TORCH_CHECK_VALUE(place_of_.back() < capacity_, "[generate] at most ", capacity_,
                      " tokens. Got token ", place_of_.back() + 1);
    tokens.push_back(slot);
    new_tokens_.push_back(slot);
    slot += slots_.stride();
  }
  for (int64_t i = 0; i < std::ssize(row_of_); ++i) {
    const int64_t seen = place_of_[i] + 1, source = source_[row_of_[i]];
    visible_own_.add(tokens_.of(row_of_[i]).data(), seen);
    const int64_t keys = memory_.packing.lengths[source];
    visible_memory_.add_to_set(i, memory_.tokens.data() + memory_.packing.first[source],
                               is_causal_ ? std::min(keys, seen) : keys);
  }
}

// Where the call's tokens are, unless positions are of ids.
StepPositions StepDecoder::places() const {
  const auto [least, most] = std::minmax_element(place_of_.begin(), place_of_.end());
  if (*least == *most) return {{}, *most};
  return {column(place_of_), *most};
}

// Where the tokens of a target are: rows of the table, if positions are of ids.
std::vector<int64_t> StepDecoder::places_in(const std::vector<int64_t>& target) const {
  std::vector<int64_t> places;
  const auto& embedding = model_.tgt_embedding;
  int64_t before = 0;
  for (const int64_t token : target) {
    if (!embedding.growing)
      places.push_back(before++);
    else
      places.push_back(*embedding.padding_idx + (token == *embedding.padding_idx ? 0 : ++before));
  }
  return places;
}

// Computes the relative biases of twice as many distances where a token of the call needs more: a
// model without positions may have a capacity that no output comes near to.
void StepDecoder::extend_relative() {
  const auto& biases = model_.decoder.relative_biases;
  const auto& alibi = model_.decoder.alibi;
  const int64_t length = *std::max_element(place_of_.begin(), place_of_.end()) + 1;
  if ((biases.empty() && !alibi) || length <= relative_length_) return;
  relative_length_ = std::min(capacity_, std::max({kFirstDistances, 2 * relative_length_, length}));
  relative_.clear();
  if (alibi) alibi_ = alibi->before(relative_length_).flip(1);
  for (const RelativeBias& bias : biases) {
    relative_.push_back(bias.before(relative_length_).flip(1));
    if (alibi) relative_.back().add_(alibi_);
  }
}

// Bias of the call's tokens for the memory's keys, (tokens, H, S), or undefined.
at::Tensor StepDecoder::memory_bias() const {
  if (!memory_distances_.defined() && !bias_.defined()) return {};
  const at::Tensor place = at::tensor(place_of_, at::kLong);
  std::vector<int64_t> sources;
  for (const int64_t row : row_of_) sources.push_back(source_[row]);
  const at::Tensor source = at::tensor(sources, at::kLong);
  at::Tensor bias;
  if (memory_distances_.defined()) {
    const int64_t keys = memory_distances_.size(1) - capacity_ + 1;
    bias =
        memory_distances_.unfold(1, keys, 1).index_select(1, capacity_ - 1 - place).transpose(0, 1);
    const at::Tensor kept = memory_.packing.kept_positions();
    if (kept.defined())
      bias = bias.gather(2, kept.index_select(0, source).unsqueeze(1).expand(bias.sizes()));
  }
  if (bias_.defined()) {
    const at::Tensor own = bias_.size(2) == 1 ? bias_.select(2, 0).index_select(0, source)
                                              : bias_.index({source, at::indexing::Slice(), place});
    bias = bias.defined() ? own + bias : own;
  }
  return bias.contiguous();
}

// What the two attentions of a layer have in common.
kernel::AttentionRequest StepDecoder::attention(const float* query, int64_t stride) const {
  const HeadSizes& sizes = model_.decoder.sizes;
  kernel::AttentionRequest request = {};
  request.query = query;
  request.query_stride = stride;
  request.heads = sizes.heads;
  request.group = sizes.heads / sizes.kv_heads;
  request.width = sizes.head_dim;
  request.out = attended_.data_ptr<float>();
  request.out_stride = sizes.query_width();
  return request;
}

// Each new token sees itself and all before it in its row.
void StepDecoder::attend_own(size_t layer, const float* query, int64_t stride) const {
  const DecoderLayer& own = model_.decoder.layers[layer];
  const int64_t kv_width = model_.decoder.sizes.kv_width();
  kernel::AttentionRequest request = attention(query, stride);
  request.key = 2 * kv_width * static_cast<int64_t>(layer);
  request.value = request.key + kv_width;
  request.scale = own.scoring.scale;
  request.softcap = own.scoring.softcap;
  const at::Tensor& bias = own.relative ? relative_[*own.relative] : alibi_;
  if (bias.defined()) {
    request.relative = bias.const_data_ptr<float>();
    request.relative_stride = bias.stride(0);
  }
  attend_tokens(request, visible_own_);
}

void StepDecoder::attend_memory(size_t layer, const float* query, const at::Tensor& bias) const {
  kernel::AttentionRequest request = attention(query, model_.decoder.sizes.query_width());
  request.key = memory_.keys_of(static_cast<int64_t>(layer));
  request.value = request.key + memory_.values;
  request.head_stride = memory_.head_stride;
  request.scale = model_.decoder.layers[layer].cross_scoring.scale;
  if (bias.defined()) {
    request.bias = bias.const_data_ptr<float>();
    request.bias_row_stride = bias.stride(0);
    request.bias_head_stride = bias.stride(1);
  }
  attend_tokens(request, visible_memory_);
}

// What the call's tokens attend to by one head of a layer, or all, (tokens, heads, S), from the
// queries that are there. Only few searches ask for it, so the kernel does not keep its weights.
at::Tensor StepDecoder::memory_weights(int64_t layer, std::optional<int64_t> head,
                                       const at::Tensor& bias) const {
  const HeadSizes& sizes = model_.decoder.sizes;
  const Packing& packing = memory_.packing;
  const int64_t heads = head ? 1 : sizes.heads, first = head.value_or(0);
  const int64_t kv_heads = head ? 1 : sizes.kv_heads;
  const int64_t first_of_keys = first / (sizes.heads / sizes.kv_heads);
  at::Tensor all = at::zeros({std::ssize(row_of_), heads, packing.length}, at::kFloat);
  for (size_t set = 0; set < visible_memory_.counts.size(); ++set) {
    const int64_t begin = visible_memory_.sets[set], rows = visible_memory_.sets[set + 1] - begin;
    const int64_t source = source_[row_of_[begin]], keys = visible_memory_.counts[set];
    if (keys == 0) continue;
    const at::Tensor query = query_.narrow(0, begin, rows)
                                 .view({1, rows, sizes.heads, sizes.head_dim})
                                 .transpose(1, 2)
                                 .narrow(1, first, heads);
    const at::Tensor seen = memory_.keys(layer, source)
                                .narrow(0, first_of_keys, kv_heads)
                                .narrow(1, 0, keys)
                                .unsqueeze(0);
    ScoreMask mask;
    if (bias.defined())
      mask.bias = bias.narrow(0, begin, rows)
                      .narrow(1, first, heads)
                      .narrow(2, 0, keys)
                      .transpose(0, 1)
                      .unsqueeze(0);
    const at::Tensor weights =
        functional::attention_weights(query, seen, mask,
                                      model_.decoder.layers[layer].cross_scoring.scale)
            .squeeze(0)
            .transpose(0, 1);
    at::Tensor own = all.narrow(0, begin, rows);
    if (packing.positions.empty()) {
      own.narrow(2, 0, keys).copy_(weights);
    } else {
      const auto from = packing.positions.begin() + packing.first[source];
      const at::Tensor positions = at::tensor(std::vector<int64_t>(from, from + keys), at::kLong);
      own.index_copy_(2, positions - source * packing.length, weights);
    }
  }
  return all;
}

torch::Tensor StepDecoder::attention() const {
  return memory_weights(std::ssize(model_.decoder.layers) - 1, std::nullopt, memory_bias()).mean(1);
}

// Runs the tokens `ids` (tokens, 1) of the rows row_of_ through the layers, or those that `wanted`
// needs, of which weights[i] becomes what they attend to. x_ and input_ then have the result.
Stream StepDecoder::run(const at::Tensor& ids, const StepPositions& where, RowRegime regime,
                        const std::vector<LayerHead>& wanted, const at::Tensor& weights) {
  const DecoderStack& stack = model_.decoder;
  const int64_t qkv_width = stack.sizes.width(), width = stack.sizes.query_width();
  const int64_t kv_width = 2 * stack.sizes.kv_width(), tokens = ids.size(0);
  make_room(tokens);
  x_ = model_.tgt_embedding(ids, where.past, where.ids);
  Stream stream = stack.stream(x_.data_ptr<float>(), input_.data_ptr<float>(), tokens);
  stream.regime = regime;
  stream.input_converted = {stack.row_format(), input_converted_.data_ptr<float>(), tokens,
                            stack.width};
  float* const qkv = projected_.data_ptr<float>();
  float* const query = query_.data_ptr<float>();
  const float* const attended = attended_.const_data_ptr<float>();
  const at::Tensor bias = memory_bias();
  extend_relative();
  const auto each_row = [&](const auto& f) {
    by_rows(tokens, [&](int64_t begin, int64_t end) { f(stream.part(begin, end), begin); });
  };
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.entry); });
  int64_t layers = std::ssize(stack.layers);
  if (!wanted.empty()) {
    layers = 0;
    for (const auto& [layer, head] : wanted) layers = std::max(layers, layer + 1);
  }
  for (int64_t i = 0; i < layers; ++i) {
    const DecoderLayer& layer = stack.layers[i];
    each_row([&](const Stream& part, int64_t at) {
      project(part, layer.in_proj, part.input, qkv + at * qkv_width, qkv_width);
    });
    keep_rows(qkv + width, qkv_width, new_tokens_, i * kv_width, kv_width);
    attend_own(i, qkv, qkv_width);
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.out_proj, attended + at * width, width, {}, layer.after_attention);
      project(part, layer.query, part.input, query + at * width, width);
    });
    for (size_t one = 0; one < wanted.size(); ++one)
      if (wanted[one].layer == i)
        weights[static_cast<int64_t>(one)].copy_(
            memory_weights(i, wanted[one].head, bias).squeeze(1));
    if (!wanted.empty() && i + 1 == layers) break;
    attend_memory(i, query, bias);
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.cross_out, attended + at * width, width, {}, layer.after_cross);
      feed_forward(part, layer.feed_forward, part.input, {}, layer.after_feed_forward);
    });
  }
  if (stack.last) each_row([&](const Stream& part, int64_t) { normalise(part, stack.last); });
  return stream;
}

at::Tensor StepDecoder::read(const std::vector<std::vector<int64_t>>& targets,
                             const std::vector<LayerHead>& wanted) {
  std::vector<int64_t> ids, places;
  row_of_.clear();
  for (size_t i = 0; i < targets.size(); ++i) {
    ids.insert(ids.end(), targets[i].begin(), targets[i].end());
    row_of_.insert(row_of_.end(), targets[i].size(), static_cast<int64_t>(i) * rows_per_source_);
    const auto own = places_in(targets[i]);
    places.insert(places.end(), own.begin(), own.end());
  }
  const at::Tensor weights =
      at::empty({std::ssize(wanted), std::ssize(ids), memory_.packing.length}, at::kFloat);
  if (ids.empty()) return weights;
  take_slots(/*calls=*/1);
  const int64_t most = *std::max_element(place_of_.begin(), place_of_.end());
  run(column(ids), {column(places), most}, RowRegime::Many, wanted, weights);
  for (int64_t row = 0; row < rows_; ++row)
    if (row % rows_per_source_ != 0) tokens_.of(row) = tokens_.of(row - row % rows_per_source_);
  return weights;
}

at::Tensor StepDecoder::next_logits(std::vector<std::vector<int64_t>> targets) {
  std::vector<int64_t> last, places;
  for (auto& target : targets) {
    places.push_back(places_in(target).back());
    last.push_back(target.back());
    target.pop_back();
  }
  read(targets);
  size_t most = 0;
  for (const auto& target : targets) most = std::max(most, target.size());
  set_positions({column(places), static_cast<int64_t>(most)});
  return step(column(last));
}

torch::Tensor StepDecoder::step(const torch::Tensor& tokens) {
  row_of_.resize(rows_);
  std::iota(row_of_.begin(), row_of_.end(), 0);
  int64_t least = capacity_;
  for (int64_t row = 0; row < rows_; ++row)
    least = std::min<int64_t>(least, std::ssize(tokens_.of(row)));
  take_slots(capacity_ - least);
  const StepPositions where = positions_ ? *std::exchange(positions_, std::nullopt) : places();
  const int64_t summed = sums_ == StepSums::OfOneSource ? rows_per_source_ : rows_;
  const Stream stream = run(tokens, where, row_regime(summed), {}, {});
  if (!logits_.defined()) logits_ = at::empty({rows_, model_.final_layer.out()}, at::kFloat);
  const at::Tensor logits = logits_.narrow(0, 0, rows_);
  project(stream, model_.final_layer, model_.decoder.result(stream), logits.data_ptr<float>(),
          logits.size(1));
  return logits;
}

}  // namespace posenc::inference
