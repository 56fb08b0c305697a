// Attention of a sequence whose queries come in parts, each after keys that are known already, has
// the bits of the whole; and one query over tokens anywhere in memory that of the last query.

#include <algorithm>
#include <vector>

#include "kernels/isa/sets.h"
#include "support/dice.h"

namespace posenc::kernels::inference {
namespace {

struct Part {
  int64_t first, count;
};

struct CausalCase {
  int64_t group, kv_heads, heads, width, length, window;
  bool has_relative;
  float softcap;
  torch::Tensor query, both, relative;

  explicit CausalCase(testing::Dice& dice)
      : group(1 + dice.below(3)),
        kv_heads(1 + dice.below(2)),
        heads(group * kv_heads),
        width(8 * (1 + dice.below(9))),
        length(1 + dice.below(200)),
        window(dice.coin() ? kNoWindow : dice.below(length)),
        has_relative(dice.coin()),
        softcap(dice.coin() ? 2.5F : 0.0F),
        query(torch::randn({length, heads * width})),
        both(torch::randn({length, 2 * kv_heads * width + 16})),
        relative(torch::randn({heads, 2 * length - 1 + kPanelRows})) {}

  // Keys that no query of the part sees are left out, as a cache leaves them out.
  void attend(const InferenceKernels& use, const Part& part, torch::Tensor& out) const {
    const int64_t place = window == kNoWindow ? part.first : std::min(part.first, window);
    const int64_t key = part.first - place, keys = place + part.count;
    std::vector<float> scratch(static_cast<size_t>(sequence_floats(width, length)));
    SequenceAttentionRequest request = {};
    request.query = query.const_data_ptr<float>();
    request.query_stride = query.size(1);
    request.keys = both.const_data_ptr<float>();
    request.values = request.keys + kv_heads * width;
    request.key_stride = both.size(1);
    request.heads = heads;
    request.width = width;
    request.sequences = 1;
    request.group = group;
    request.query_first = &part.first;
    request.query_lengths = &part.count;
    request.key_first = &key;
    request.key_lengths = &keys;
    request.query_places = &place;
    request.scale = 0.2F;
    request.softcap = softcap;
    request.is_causal = true;
    request.window = window;
    if (has_relative) {
      request.relative = relative.const_data_ptr<float>() + length - 1;
      request.relative_stride = relative.size(1);
    }
    request.out = out.data_ptr<float>();
    request.out_stride = out.size(1);
    use.attention_sequence.attend(request, 0, heads, scratch.data());
  }

  torch::Tensor last(const InferenceKernels& use) const {
    const int64_t seen = window == kNoWindow ? length : std::min(length, window + 1);
    std::vector<const float*> tokens;
    for (int64_t i = length - seen; i < length; ++i)
      tokens.push_back(both.const_data_ptr<float>() + i * both.size(1));
    const float* const* const first = tokens.data();
    auto out = torch::empty({heads * width});
    std::vector<float> scratch(static_cast<size_t>(length + 16));
    AttentionRequest request = {};
    request.query = query.const_data_ptr<float>() + (length - 1) * query.size(1);
    request.query_stride = query.size(1);
    request.heads = heads;
    request.width = width;
    request.tokens = &first;
    request.counts = &seen;
    request.value = kv_heads * width;
    request.scale = 0.2F;
    request.softcap = softcap;
    if (has_relative) {
      request.relative = relative.const_data_ptr<float>() + length - 1;
      request.relative_stride = relative.size(1);
    }
    request.out = out.data_ptr<float>();
    request.out_stride = out.size(0);
    request.group = group;
    use.attention_step.attend(request, 0, heads, scratch.data());
    return out;
  }
};

TEST(AttentionParts, AreTheWhole) {
  on_each_set([](const InferenceKernels& use) {
    for (uint32_t number = 0; number < 60; ++number) {
      SCOPED_TRACE(number);
      testing::Dice dice(number);
      const CausalCase one(dice);
      auto whole = torch::empty_like(one.query), parts = torch::empty_like(one.query);
      one.attend(use, {0, one.length}, whole);
      for (int64_t first = 0, count = 0; first < one.length; first += count) {
        count = 1 + dice.below(one.length - first);
        one.attend(use, {first, count}, parts);
      }
      EXPECT_TRUE(testing::bit_equal(parts, whole));
      EXPECT_TRUE(one.last(use).allclose(whole[one.length - 1], 1e-5, 1e-5));
    }
  });
}

}  // namespace
}  // namespace posenc::kernels::inference
