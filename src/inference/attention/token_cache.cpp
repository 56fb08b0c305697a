#include "inference/attention/token_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "base/platform/memory.h"
#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kGrainOfAttention = 1 << 15;
constexpr int64_t kFirstSteps = 8;  // capacity of the first block, in steps
constexpr int64_t kLeastDistances = 64;
// Limit for blocks with room for more than one step, to bound memory allocated ahead of its use.
constexpr int64_t kMostFloats = int64_t{16} << 20;

// With an odd number of slots per step and an odd stride a row's tokens are spread over all sets of
// the processor's cache, whatever the number of rows.
int64_t slots_per_step(int64_t rows) { return rows | 1; }

void copy_floats(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, sizeof(float) * static_cast<std::size_t>(count));
}

}  // namespace

// A new block is as large as all those before, within bounds, and not larger than the remaining
// calls need.
float* TokenSlots::take(int64_t count, int64_t calls, int64_t time) {
  const int64_t slots = slots_per_step(count);
  if (free_slots_ < slots) {
    const int64_t most = std::max<int64_t>(1, kMostFloats / (slots * stride_));
    const int64_t steps = std::min({std::max(kFirstSteps, calls_), most, calls});
    blocks_.push_back({torch_internals::fresh_output({steps * slots, stride_}, at::kFloat), time});
    free_ = blocks_.back().memory.data_ptr<float>();
    free_slots_ = steps * slots;
  }
  ++calls_;
  blocks_.back().time = time;
  float* const taken = free_;
  free_ += slots * stride_;
  free_slots_ -= slots;
  return taken;
}

void TokenSlots::drop_before(int64_t time) {
  while (blocks_.size() > 1 && blocks_.front().time < time) blocks_.pop_front();
}

void TokenLists::select(const int64_t* rows, int64_t count) {
  for (int64_t row = 0; row < count; ++row)
    next_[static_cast<std::size_t>(row)] = rows_[static_cast<std::size_t>(rows[row])];
  rows_.swap(next_);
}

void attend_tokens(kernel::AttentionRequest request, const VisibleTokens& seen) {
  request.tokens = seen.tokens.data();
  request.counts = seen.counts.data();
  const bool has_sets = !seen.sets.empty();
  if (has_sets) request.sets = seen.sets.data();
  const auto items = std::ssize(seen.counts);
  const int64_t rows = has_sets ? (seen.sets.back() + items - 1) / items : 1;  // of a set
  const int64_t most = *std::max_element(seen.counts.begin(), seen.counts.end());
  const int64_t grain = kGrainOfAttention / std::max<int64_t>(1, 2 * most * request.width * rows);
  const int64_t floats = (most + 16) * (has_sets ? kernel::kSetRows : 1);
  const auto attend = kernels::chosen_inference().attention_step.attend;
  torch_internals::parallel_parts(
      0, items * request.heads, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        attend(request, begin, end, platform::scratch(platform::Scratch::Scores, floats));
      });
}

void keep_rows(const float* from, int64_t stride, const std::vector<float*>& to, int64_t offset,
               int64_t width) {
  torch_internals::parallel_parts(0, std::ssize(to),
                                  std::max<int64_t>(1, kGrainOfAttention / width),
                                  [&](int64_t begin, int64_t end) {
                                    for (int64_t row = begin; row < end; ++row) {
                                      float* const own = to[static_cast<std::size_t>(row)];
                                      if (own != nullptr)
                                        copy_floats(from + row * stride, width, own + offset);
                                    }
                                  });
}

TokenCache::TokenCache(const std::vector<CachedAttention>& attentions, int64_t rows,
                       int64_t capacity)
    : capacity_(capacity), lengths_(static_cast<std::size_t>(rows), 0) {
  for (const CachedAttention& one : attentions) {
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const Group& of) { return of.window == one.window; });
    if (group == groups_.end()) group = groups_.insert(group, Group{one.window});
    places_.push_back({static_cast<std::size_t>(group - groups_.begin()), group->floats});
    group->floats += 2 * one.sizes.kv_width();
  }
  for (Group& group : groups_) {
    group.slots.emplace(group.floats);
    group.lists = TokenLists(rows);
  }
}

void TokenCache::share(int64_t row, const std::shared_ptr<const TokenCache>& beginning,
                       int64_t count) {
  TORCH_INTERNAL_ASSERT(length(row) == 0 && count <= beginning->length(0));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& tokens = beginning->groups_[i].lists.of(0);
    groups_[i].lists.of(row).assign(tokens.begin(), tokens.begin() + count);
  }
  lengths_[static_cast<std::size_t>(row)] = count;
  if (beginnings_.empty() || beginnings_.back() != beginning) beginnings_.push_back(beginning);
}

void TokenCache::clear(int64_t row) {
  for (Group& group : groups_) group.lists.of(row).clear();
  lengths_[static_cast<std::size_t>(row)] = 0;
}

void TokenCache::select(const std::vector<int64_t>& rows) {
  for (Group& group : groups_) group.lists.select(rows.data(), std::ssize(rows));
  std::vector<int64_t> lengths;
  for (const int64_t row : rows) lengths.push_back(length(row));
  lengths_ = std::move(lengths);
}

// The last tokens that later ones see, and one more, so that a beginning without its last token can
// be shared.
void TokenCache::take_slots(Group& group, const Packing& packing) {
  const auto kept = [&](int64_t b) {
    const int64_t count = packing.lengths[b];
    return group.window ? std::min(count, *group.window + 1) : count;
  };
  int64_t all = 0, least = capacity_;
  for (int64_t b = 0; b < packing.batch; ++b) {
    all += kept(b);
    least = std::min(least, packing.past[b] + packing.lengths[b] - 1);
  }
  int64_t calls = is_step_ ? capacity_ - least : 1;
  if (group.window) {
    calls = std::min(calls, std::max(kFirstSteps, *group.window / 2));
    group.slots->drop_before(time_ - *group.window - 1);
  }
  float* slot = group.slots->take(all, calls, time_);
  group.targets.clear();
  group.seen.clear();
  for (int64_t b = 0; b < packing.batch; ++b) {
    auto& tokens = group.lists.of(of_call_[b]);
    for (int64_t i = packing.lengths[b]; i > 0; --i) {
      float* const own = i <= kept(b) ? slot : nullptr;
      if (own != nullptr) slot += group.slots->stride();
      tokens.push_back(own);
      group.targets.push_back(own);
    }
  }
  if (!is_step_) return;
  for (int64_t b = 0; b < packing.batch; ++b) {
    const auto& tokens = group.lists.of(of_call_[b]);
    const auto count = std::ssize(tokens);
    const int64_t seen = group.window ? std::min(count, *group.window + 1) : count;
    group.seen.add(tokens.data() + (count - seen), seen);
  }
}

void TokenCache::begin(const Packing& packing, const std::vector<int64_t>& rows) {
  of_call_ = rows;
  is_step_ = packing.rows == packing.batch;
  has_past_ = false;
  for (int64_t b = 0; b < packing.batch; ++b) has_past_ |= packing.past[b] > 0;
  is_step_ &= has_past_;
  if (packing.batch == std::ssize(lengths_)) ++time_;
  for (Group& group : groups_) take_slots(group, packing);
  for (int64_t b = 0; b < packing.batch; ++b) lengths_[rows[b]] += packing.lengths[b];
  next_ = 0;
}

void TokenCache::attend(const AttentionInput& input, float* out) {
  const Place place = places_[next_++];
  const Group& group = groups_[place.group];
  const auto* const keys = input.key.const_data_ptr<float>();
  TORCH_INTERNAL_ASSERT(input.value.const_data_ptr<float>() == keys + input.sizes.kv_width());
  keep_rows(keys, input.key.stride(0), group.targets, place.offset, 2 * input.sizes.kv_width());
  if (is_step_) return attend_step(group, place.offset, input, out);
  if (has_past_) return attend_gathered(group, place.offset, input, out);
  inference::attend(input, out);
}

void TokenCache::attend_step(const Group& group, int64_t offset, const AttentionInput& input,
                             float* out) const {
  kernel::AttentionRequest request = {};
  request.query = input.query.const_data_ptr<float>();
  request.query_stride = input.query.stride(0);
  request.heads = input.sizes.heads;
  request.group = input.sizes.heads / input.sizes.kv_heads;
  request.width = input.sizes.head_dim;
  request.key = offset;
  request.value = offset + input.sizes.kv_width();
  request.scale = input.scoring.scale;
  request.softcap = input.scoring.softcap;
  if (const at::Tensor& bias = input.mask.bias; bias.defined()) {  // of all keys, (1, H, 1, .)
    request.bias = bias.const_data_ptr<float>();
    request.bias_head_stride = bias.stride(1);
  }
  if (const at::Tensor& relative = input.mask.by_distance; relative.defined()) {
    request.relative = relative.const_data_ptr<float>() + distance_zero(relative);
    request.relative_stride = relative.stride(0);
  }
  request.out = out;
  request.out_stride = input.sizes.query_width();
  attend_tokens(request, group.seen);
}

// Copies what the new tokens see of those before them, and themselves, to rows in order.
void TokenCache::attend_gathered(const Group& group, int64_t offset, const AttentionInput& input,
                                 float* out) {
  const Packing& queries = input.queries;
  const int64_t width = 2 * input.sizes.kv_width(), stride = odd_stride(width);
  Packing keys(0, 0);
  keys.batch = queries.batch;
  std::vector<int64_t> places;
  for (int64_t b = 0; b < queries.batch; ++b) {
    const int64_t past = queries.past[b];
    places.push_back(group.window ? std::min(past, *group.window) : past);
    keys.first.push_back(keys.rows);
    keys.lengths.push_back(places.back() + queries.lengths[b]);
    keys.length = std::max(keys.length, keys.lengths.back());
    keys.rows += keys.lengths.back();
  }
  if (!gathered_.defined() || gathered_.numel() < keys.rows * stride)
    gathered_ = at::empty({keys.rows * stride}, at::kFloat);
  const at::Tensor all = gathered_.narrow(0, 0, keys.rows * stride).view({keys.rows, stride});
  auto* const to = all.data_ptr<float>();
  const auto* const own = input.key.const_data_ptr<float>();
  torch_internals::parallel_parts(0, queries.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const auto& tokens = group.lists.of(of_call_[b]);
      float* row = to + keys.first[b] * stride;
      for (int64_t i = queries.past[b] - places[b]; i < queries.past[b]; ++i, row += stride)
        copy_floats(tokens[i] + offset, width, row);
      for (int64_t i = 0; i < queries.lengths[b]; ++i, row += stride)
        copy_floats(own + (queries.first[b] + i) * input.key.stride(0), width, row);
    }
  });
  AttentionInput whole = {input.query,
                          all.narrow(1, 0, width / 2),
                          all.narrow(1, width / 2, width / 2),
                          queries,
                          keys,
                          input.sizes,
                          input.scoring,
                          input.mask,
                          input.window,
                          input.out_stride};
  whole.query_places = places.data();
  whole.has_longer_distances = true;
  inference::attend(whole, out);
}

// Of twice as many distances where a row needs more: the capacity may be far from what is reached.
const DistanceRows& TokenCache::distances(const std::vector<RelativeBias>& biases,
                                          const std::optional<AlibiSlopes>& alibi) {
  const int64_t longest = *std::max_element(lengths_.begin(), lengths_.end());
  if (!distances_ || longest > distances_length_) {
    distances_length_ = std::max({longest, kLeastDistances, 2 * distances_length_});
    distances_.emplace(biases, alibi, ScoreMask{}, distances_length_);
  }
  return *distances_;
}

}  // namespace posenc::inference
