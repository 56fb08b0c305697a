// posenc-budget: one case for each operation
// Every operation gives the same bits with each instruction set, on every architecture: the hash of
// its results is a constant. Inputs are made by integer arithmetic, so that no library function
// has a part in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/platform/memory.h"
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "kernels/isa/sets.h"
#include "kernels/weights.h"

namespace posenc::kernels {
namespace {

using embed::Type;

// FNV-1a.
class Hash {
 public:
  template <typename T>
  void add(const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(T); ++i)
      value_ = (value_ ^ bytes[i]) * 0x100000001b3;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint32_t word() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>(state_ >> 33);
  }
  int64_t below(int64_t n) { return word() % n; }
  // In (-4, 4), with all bits of a float32 in use; a few are tiny.
  double real() {
    const double x = (static_cast<double>(word()) - 0x1p30) * 0x1p-28;
    return word() % 16 == 0 ? x * 0x1p-20 : x;
  }
  std::vector<float> floats(int64_t n) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& x : all) x = static_cast<float>(real());
    return all;
  }
  std::vector<uint8_t> bits(int64_t n) {
    std::vector<uint8_t> all(static_cast<size_t>(n / 8 + 9));
    for (uint8_t& b : all) b = static_cast<uint8_t>(word());
    return all;
  }
  // n elements of a type. The half types have numbers of ordinary size and, in float16, subnormals.
  std::vector<uint8_t> elements(Type type, int64_t n) {
    const int64_t size = embed::element_size(type);
    std::vector<uint8_t> all(static_cast<size_t>(n * size));
    for (int64_t i = 0; i < n; ++i) {
      const double wide = real();
      const auto single = static_cast<float>(wide);
      const uint16_t half = type == Type::BFloat16 || type == Type::BFloat16Exact
                                ? static_cast<uint16_t>(0x3d00 + word() % 0x400)
                                : static_cast<uint16_t>(word() % 0x4400);
      const uint16_t is_signed = half | static_cast<uint16_t>(word() % 2 << 15);
      const void* const from = size == 8   ? static_cast<const void*>(&wide)
                               : size == 4 ? static_cast<const void*>(&single)
                                           : &is_signed;
      std::memcpy(all.data() + i * size, from, static_cast<size_t>(size));
    }
    return all;
  }

 private:
  uint64_t state_;
};

// `compute` must give this hash with every set for which `applies`.
void expect_hash(
    uint64_t expected, const std::function<void(const InferenceKernels&, Hash&)>& compute,
    const std::function<bool(const InferenceKernels&)>& applies = [](const auto&) {
      return true;
    }) {
  for (const std::string& name : set_names()) {
    const InferenceKernels& use = *find_inference(name);
    if (!applies(use)) continue;
    Hash hash;
    compute(use, hash);
    EXPECT_EQ(hash.value(), expected) << name << ": 0x" << std::hex << hash.value();
  }
}
// Sets without fused multiply-add have a different expected value.
void expect_hashes(uint64_t fused, uint64_t separate,
                   const std::function<void(const InferenceKernels&, Hash&)>& compute) {
  expect_hash(fused, compute, is_fused);
  expect_hash(separate, compute, [](const InferenceKernels& use) { return !is_fused(use); });
}

constexpr int64_t kTokens = 19, kDim = 147;

TEST(KernelBits, Gather) {
  expect_hash(0x6b791c7a339d6e37, [](const InferenceKernels& use, Hash& hash) {
    for (int i = 0; i < embed::kTypes; ++i) {
      const auto type = static_cast<Type>(i);
      const bool exact = embed::table_element_size(type) != embed::element_size(type);
      Numbers numbers(1);
      const auto weight = numbers.elements(type, 50 * kDim);
      const auto table = numbers.elements(exact ? Type::Float32 : type, 50 * kDim);
      const auto bits = numbers.bits(kTokens * kDim);
      std::vector<int64_t> ids(kTokens);
      for (int64_t& id : ids) id = numbers.below(50);
      for (const bool dropout : {false, true}) {
        std::vector<uint8_t> out(static_cast<size_t>(kTokens * kDim * embed::element_size(type)));
        embed::EmbedRequest g = {};
        g.ids = {ids.data(), true};
        g.tokens = kTokens;
        g.weight = weight.data();
        g.weight_stride = g.dim = kDim;
        g.scale = 11.3125;
        g.tables = 1;
        g.added[0] = {table.data(), kDim, 0, {nullptr, false}, 1, 7};
        if (dropout) g.kept = {bits.data(), 1.25};
        g.out = out.data();
        use.gather.gather[i](g, 0, kTokens);
        hash.add(out);
      }
    }
  });
}

TEST(KernelBits, SumRows) {
  expect_hash(0x963a416b9687240a, [](const InferenceKernels& use, Hash& hash) {
    for (int i = 0; i < embed::kTypes; ++i) {
      const auto type = static_cast<Type>(i);
      Numbers numbers(2);
      const auto grad = numbers.elements(type, kTokens * kDim);
      const auto bits = numbers.bits(kTokens * kDim);
      std::vector<int32_t> token(kTokens);
      for (int t = 0; t < kTokens; ++t) token[t] = t * 7 % kTokens;
      const int32_t first[] = {0, 1, 9, kTokens};
      std::vector<uint8_t> out(static_cast<size_t>(3 * kDim * embed::element_size(type)));
      embed::SumRowsRequest s;
      s.grad = grad.data();
      s.dim = s.out_stride = kDim;
      s.scale = 11.3125;
      s.kept = {bits.data(), 1.25};
      s.token = token.data();
      s.first = first;
      s.out = out.data();
      use.sum_rows.sum_rows[i](s, 0, 3);
      hash.add(out);
    }
  });
}

TEST(KernelBits, Dropout) {
  expect_hash(0xf218929243343eb9, [](const InferenceKernels& use, Hash& hash) {
    for (int i = 0; i < 4; ++i) {
      const auto type = static_cast<Type>(i);
      Numbers numbers(3);
      const auto x = numbers.elements(type, 1001);
      const auto bits = numbers.bits(1001);
      std::vector<uint8_t> out(x.size());
      use.dropout.drop[i]({x.data(), {bits.data(), 1.25}, out.data()}, 0, 1001);
      hash.add(out);
    }
  });
}

TEST(KernelBits, Random) {
  expect_hash(0xee21168f8fcaf4b7, [](const InferenceKernels& use, Hash& hash) {
    Numbers numbers(4);
    std::vector<uint32_t> state(624);
    for (uint32_t& word : state) word = numbers.word() * 2 + 1;
    use.random.twist(state.data());
    hash.add(state);
    std::vector<uint64_t> lanes(embed::kMcgLanes), bits;
    for (uint64_t& lane : lanes) lane = 1 + numbers.word() % 0x7ffffffe;
    for (int i = 0; i < 9; ++i) {
      bits.push_back(use.random.keep_mt19937(state.data() + 128 * (i % 4), 64 - i, 7ull << 50));
      bits.push_back(use.random.keep_mcg31(lanes.data(), 0x60000000));
    }
    hash.add(bits);
    hash.add(lanes);
  });
}

TEST(KernelBits, Rotary) {
  expect_hash(0xfbdab6f12807d9e8, [](const InferenceKernels& use, Hash& hash) {
    constexpr int64_t kPairs = 45, kRows = 9, kWidth = 100;
    for (int i = 0; i < embed::kTypes; ++i) {
      const auto type = static_cast<Type>(i);
      for (const bool adjacent : {false, true}) {
        Numbers numbers(5);
        const auto cosine = numbers.floats(kRows * kPairs), sine = numbers.floats(kRows * kPairs);
        const auto x = numbers.elements(type, 2 * kRows * kWidth);
        std::vector<uint8_t> out(x.size());
        rotary::Rotation r = {};
        r.angles.cos = cosine.data();
        r.angles.sin = sine.data();
        r.angles.row_stride = kPairs;
        r.angles.step = 1;
        r.angles.is_float = true;
        r.angles.round = i < 4;
        r.length = kRows;
        r.pairs = kPairs;
        r.width = kWidth;
        r.read_adjacent = r.write_adjacent = adjacent;
        r.count = 1;
        r.heads[0] = {x.data(), out.data(), 2, 0, kWidth, 2 * kWidth, 0, kWidth, 2 * kWidth};
        float* const scratch =
            platform::scratch(platform::Scratch::Rotation, rotary::scratch_floats(kPairs));
        use.rotary.rotate[i](r, 0, kRows, scratch);
        hash.add(out);
      }
    }
  });
}

void embeddings(embed::NormRounding rounding, const InferenceKernels& use, Hash& hash) {
  for (const int64_t dim : {5, 384, 1027}) {
    Numbers numbers(6);
    const auto weight = numbers.floats(30 * dim), table = numbers.floats(30 * dim);
    const auto gamma = numbers.floats(dim), beta = numbers.floats(dim);
    const auto bits = numbers.bits(kTokens * dim);
    std::vector<int64_t> ids(kTokens);
    for (int64_t& id : ids) id = numbers.below(30);
    std::vector<float> out(static_cast<size_t>(kTokens * dim));
    embed::EmbedRequest q;
    q.ids = {ids.data(), true};
    q.tokens = kTokens;
    q.weight = weight.data();
    q.weight_stride = q.dim = dim;
    q.tables = 1;
    q.added[0] = {table.data(), dim, 0, {nullptr, false}, 1, 20};
    q.norm.weight = gamma.data();
    q.norm.bias = beta.data();
    q.norm.eps = 1e-5F;
    q.kept = {bits.data(), 1.25};
    q.out = out.data();
    use.embeddings.embeddings[static_cast<int>(rounding)](q, 0, kTokens);
    hash.add(out);
  }
}

TEST(KernelBits, Embeddings) {
  using embed::NormRounding;
  expect_hash(0x8278d44e45de8d48, [](const InferenceKernels& use, Hash& hash) {
    embeddings(NormRounding::Separate, use, hash);
  });
  expect_hash(
      0xc195603d21fc75f9,
      [](const InferenceKernels& use, Hash& hash) { embeddings(NormRounding::Fused, use, hash); },
      is_fused);
}

void linear(int64_t rows, const inference::LinearKernels& kernels, Hash& hash) {
  for (const int64_t inner : {50, 512}) {
    Numbers numbers(7);
    const int64_t outer = 37;
    const auto x = numbers.floats(rows * inner), weight = numbers.floats(outer * inner);
    const auto bias = numbers.floats(outer);
    std::vector<float> out(static_cast<size_t>(rows * outer));
    std::vector<float> scratch(static_cast<size_t>(inference::scratch_floats(inner)));
    kernels.run(
        {x.data(), inner, rows, weight.data(), bias.data(), inner, outer, out.data(), outer}, 0,
        outer, scratch.data());
    hash.add(out);
  }
}

TEST(KernelBits, LinearFew) {
  expect_hashes(0x3de24d9d9904f078, 0x60e93a13689bc966,
                [](const InferenceKernels& use, Hash& hash) {
                  for (const int64_t rows : {1, 2, 5, 8}) linear(rows, use.linear_few, hash);
                });
}
TEST(KernelBits, LinearMany) {
  expect_hashes(0x617badc8c5d7dfe6, 0xf255bd0d79e9219d,
                [](const InferenceKernels& use, Hash& hash) {
                  for (const int64_t rows : {9, 50}) linear(rows, use.linear_many, hash);
                });
}

// A weight in bfloat16 gives the bits of float32's kernels.
TEST(KernelBits, LinearInBFloat16) {
  constexpr int64_t kOuter = 37;
  for (const std::string& name : set_names()) {
    const InferenceKernels& use = *find_inference(name);
    for (const int64_t rows : {1, 5, 8, 9, 50}) {
      for (const int64_t inner : {7, 50, 512}) {
        const bool many = rows > inference::kFewRows;
        Numbers numbers(22);
        const auto x = numbers.floats(rows * inner), bias = numbers.floats(kOuter);
        std::vector<uint16_t> narrow;
        std::vector<float> wide;
        for (const float w : numbers.floats(kOuter * inner)) {
          const uint32_t bits = std::bit_cast<uint32_t>(w) & 0xffff0000;
          narrow.push_back(static_cast<uint16_t>(bits >> 16));
          wide.push_back(std::bit_cast<float>(bits));
        }
        std::vector<float> expected(static_cast<size_t>(rows * kOuter)), got(expected.size()),
            scratch(static_cast<size_t>(inference::scratch_floats(inner)));
        (many ? use.linear_many : use.linear_few)
            .run({x.data(), inner, rows, wide.data(), bias.data(), inner, kOuter, expected.data(),
                  kOuter},
                 0, kOuter, scratch.data());
        (many ? use.linear_many_bfloat16 : use.linear_few_bfloat16)
            .run({x.data(), inner, rows, narrow.data(), bias.data(), inner, kOuter, got.data(),
                  kOuter},
                 0, kOuter, scratch.data());
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
            << name << ": " << rows << " rows of " << inner;
      }
    }
  }
}

void attention_of_a_step(const InferenceKernels& use, float softcap, Hash& hash) {
  constexpr int64_t kHeads = 3, kWidth = 40, kAll = kHeads * kWidth, kSeen = 21;
  Numbers numbers(8);
  const auto query = numbers.floats(2 * kAll), cache = numbers.floats(kSeen * 2 * kAll);
  std::vector<const float*> tokens;
  for (int64_t t = 0; t < kSeen; ++t) tokens.push_back(cache.data() + t * 2 * kAll);
  const float* const* const rows[] = {tokens.data(), tokens.data() + 4};
  const int64_t counts[] = {kSeen, kSeen - 4};
  std::vector<float> out(2 * kAll), scratch(32);
  inference::AttentionRequest a = {};
  a.query = query.data();
  a.query_stride = a.out_stride = a.value = kAll;
  a.heads = kHeads;
  a.width = kWidth;
  a.tokens = rows;
  a.counts = counts;
  a.scale = 0.15625F;
  a.softcap = softcap;
  a.out = out.data();
  use.attention_step.attend(a, 0, 2 * kHeads, scratch.data());
  hash.add(out);
}

TEST(KernelBits, AttentionOfAStep) {
  expect_hashes(
      0x35dcc008b448ef23, 0x55cb9ad06e265e1f,
      [](const InferenceKernels& use, Hash& hash) { attention_of_a_step(use, 0.0F, hash); });
}
TEST(KernelBits, CappedAttentionOfAStep) {
  expect_hashes(0xd7abd9921ab28546, 0xf382be3a650ee237,
                [](const InferenceKernels& use, Hash& hash) {
                  for (const float softcap : {0.75F, 50.0F})
                    attention_of_a_step(use, softcap, hash);
                });
}

// Causal or not; or in a window, with one head of keys and values.
void attention_of_sequences(const InferenceKernels& use, int64_t window, Hash& hash,
                            int64_t second = 33, inference::AttentionProducts products = {},
                            float softcap = 0.0F) {
  constexpr int64_t kHeads = 2, kWidth = 40, kAll = kHeads * kWidth;
  const int64_t rows = 20 + second;
  Numbers numbers(9);
  const auto query = numbers.floats(rows * kAll), keys = numbers.floats(rows * kAll);
  const auto values = numbers.floats(rows * kAll);
  const int64_t first[] = {0, 20}, lengths[] = {20, second};
  std::vector<float> out(static_cast<size_t>(rows * kAll));
  const SequenceAttention own = sequence_attention(use, products, kWidth, rows);
  std::vector<float> scratch(static_cast<size_t>(own.scratch_floats));
  for (const bool causal : {false, true}) {
    inference::SequenceAttentionRequest a = {};
    a.query = query.data();
    a.keys = keys.data();
    a.values = values.data();
    a.query_stride = a.key_stride = a.out_stride = kAll;
    a.heads = kHeads;
    a.width = kWidth;
    a.sequences = 2;
    a.query_first = a.key_first = first;
    a.query_lengths = a.key_lengths = lengths;
    a.scale = 0.15625F;
    a.softcap = softcap;
    a.is_causal = causal;
    a.window = window;
    if (window != inference::kNoWindow) a.group = kHeads;
    a.out = out.data();
    own.kernels.attend(a, 0, kHeads * 2, scratch.data());
    hash.add(out);
  }
}

TEST(KernelBits, AttentionOfSequences) {
  expect_hashes(0xad89a8c0bac7330a, 0xc144ea4e31f95cb4,
                [](const InferenceKernels& use, Hash& hash) {
                  attention_of_sequences(use, inference::kNoWindow, hash);
                });
}
TEST(KernelBits, AttentionInAWindow) {
  expect_hashes(
      0x4cb5742849e38a7b, 0xe779e1f0c3f291f6,
      [](const InferenceKernels& use, Hash& hash) { attention_of_sequences(use, 6, hash); });
}

TEST(KernelBits, CappedAttentionOfSequences) {
  using inference::AttentionProducts;
  expect_hashes(
      0x0879b946123ed885, 0x3b2e109e74896100, [](const InferenceKernels& use, Hash& hash) {
        for (const auto products : {AttentionProducts::Float32, AttentionProducts::Int8Scores}) {
          for (const float softcap : {0.75F, 50.0F}) {
            for (const int64_t window : {inference::kNoWindow, int64_t{6}})
              attention_of_sequences(use, window, hash, 101, products, softcap);
          }
        }
      });
}

TEST(KernelBits, AttentionWithScoresIn8Bits) {
  expect_hashes(0x92fdae36e5e13cd6, 0x78761fda128a249e,
                [](const InferenceKernels& use, Hash& hash) {
                  attention_of_sequences(use, inference::kNoWindow, hash, 101,
                                         inference::AttentionProducts::Int8Scores);
                });
}

TEST(KernelBits, AttentionWeights) {
  expect_hashes(
      0x023d0dd4ba1324b8, 0x3094ab89c618c70f, [](const InferenceKernels& use, Hash& hash) {
        constexpr int64_t kRows = 5, kMost = 70;
        Numbers numbers(17);
        const auto products = numbers.floats(kRows * kMost), term = numbers.floats(kRows * kMost);
        const auto mask = numbers.floats(kRows * kMost);
        for (const int64_t keys : {3, 16, 23, 64, 70}) {
          for (const bool divides : {false, true}) {
            std::vector<float> out(static_cast<size_t>(kRows * keys));
            inference::WeightsRequest w = {};
            w.products = products.data();
            w.rows = kRows;
            w.keys = w.products_stride = w.out_stride = keys;
            w.scale = 0.3F;
            w.divides = divides;
            w.scales_products = w.scales_term = true;
            w.term = term.data();
            w.mask = mask.data();
            w.term_stride = w.mask_stride = kMost;
            w.out = out.data();
            use.weights.weigh(w, 0, kRows);
            hash.add(out);
          }
        }
      });
}

TEST(KernelBits, AddNorm) {
  expect_hashes(
      0x75564329ebcad969, 0x473daaf622b573be, [](const InferenceKernels& use, Hash& hash) {
        Numbers numbers(10);
        const auto x = numbers.floats(5 * kDim), y = numbers.floats(5 * kDim);
        const auto weight = numbers.floats(kDim), bias = numbers.floats(kDim);
        std::vector<float> sum(5 * kDim), out(5 * kDim);
        use.add_norm.add_norm(
            {x.data(), y.data(), kDim, sum.data(), out.data(), weight.data(), bias.data(), 1e-5F},
            0, 5);
        hash.add(sum);
        hash.add(out);
      });
}

TEST(KernelBits, RootMeanSquares) {
  expect_hashes(
      0xfe774c6a78c404df, 0xb083b5040d8ab52c, [](const InferenceKernels& use, Hash& hash) {
        Numbers numbers(10);
        const auto x = numbers.floats(5 * kDim), weight = numbers.floats(kDim);
        std::vector<float> out(5 * kDim);
        for (const auto kind : {inference::NormKind::RMS, inference::NormKind::RMSPlusOne}) {
          use.add_norm.add_norm(
              {x.data(), nullptr, kDim, nullptr, out.data(), weight.data(), nullptr, 1e-5F, kind},
              0, 5);
          hash.add(out);
        }
      });
}

// Heads of queries and keys, side by side in rows, by each kind of norm.
TEST(KernelBits, NormsOfHeads) {
  using inference::NormKind;
  expect_hashes(
      0x9b80f9b7b8945227, 0x21f3f01bfd1be4b7, [](const InferenceKernels& use, Hash& hash) {
        for (const int64_t width : {6, 10, 40, 128}) {
          for (const auto kind : {NormKind::Layer, NormKind::RMS, NormKind::RMSPlusOne,
                                  NormKind::LayerPlusOne, NormKind::Affine}) {
            const bool is_rms = kind == NormKind::RMS || kind == NormKind::RMSPlusOne;
            Numbers numbers(14);
            auto x = numbers.floats(5 * width);
            const auto weight = numbers.floats(width), bias = numbers.floats(width);
            use.add_norm.add_norm({x.data(), nullptr, width, nullptr, x.data(), weight.data(),
                                   is_rms ? nullptr : bias.data(), 1e-6F, kind},
                                  0, 5);
            hash.add(x);
          }
        }
      });
}

// ReLU's square is an exact product.
TEST(KernelBits, SquaredReLU) {
  expect_hash(0x91606642ab3883d2, [](const InferenceKernels& use, Hash& hash) {
    const auto y = Numbers(12).floats(1001);
    auto x = Numbers(11).floats(1001), gated = x;
    use.activation.relu_squared.activate(x.data(), 1001);
    use.activation.relu_squared.gate(gated.data(), y.data(), 1001);
    hash.add(x);
    hash.add(gated);
  });
}

std::array<inference::ActivationKernel, 5> hashed_activations(const InferenceKernels& use) {
  const auto all = inference::activations(use);
  return {all[0], all[1], all[2], all[3], all[4]};
}

TEST(KernelBits, Gates) {
  expect_hashes(0xf9ceb63776c15181, 0x967fe8a2deda6e90,
                [](const InferenceKernels& use, Hash& hash) {
                  const auto y = Numbers(12).floats(1001);
                  for (const inference::ActivationKernel& one : hashed_activations(use)) {
                    auto x = Numbers(11).floats(1001);
                    one.gate(x.data(), y.data(), 1001);
                    hash.add(x);
                  }
                });
}

TEST(KernelBits, Activations) {
  expect_hashes(0x2cf796483523ce4d, 0xb0feb91d0d8318c8,
                [](const InferenceKernels& use, Hash& hash) {
                  for (const inference::ActivationKernel& one : hashed_activations(use)) {
                    auto x = Numbers(11).floats(1001);
                    for (size_t i = 0; i < x.size(); i += 5) x[i] *= 32.0F;
                    one.activate(x.data(), 1001);
                    hash.add(x);
                  }
                });
}

// The logarithm itself is the C library's, and not compared.
TEST(KernelBits, Topk) {
  expect_hash(0x66326d156efb5a2d, [](const InferenceKernels& use, Hash& hash) {
    const auto x = Numbers(12).floats(1001);
    std::vector<inference::TopkEntry> best(9, {-__builtin_inff(), 0});
    use.topk.topk_insert(x.data(), 1001, 0.5F, -2.0F, 7, best.data(), 9);
    std::vector<float> scores = {use.topk.log_sum_exp(x.data(), 1001).largest};
    std::vector<int64_t> indices;
    for (const auto& one : best) {
      scores.push_back(one.score);
      indices.push_back(one.index);
    }
    hash.add(scores);
    hash.add(indices);
  });
}

TEST(KernelBits, Codes) {
  expect_hash(0x4c0a114e423b84a1, [](const InferenceKernels& use, Hash& hash) {
    Numbers numbers(31);
    for (const int64_t width : {1, 24, 64, 133}) {
      constexpr int64_t kRows = 9;
      const auto x = numbers.floats(kRows * width);
      std::vector<float> ranges(static_cast<size_t>(2 * width)), step(ranges.size());
      use.codes.ranges({x.data(), kRows, width, ranges.data(), ranges.data() + width}, 0, width);
      hash.add(ranges);
      for (float& one : step) one = static_cast<float>(0.01 + numbers.below(100) * 0x1p-7);
      std::vector<uint8_t> levels(x.size());
      use.codes.levels({x.data(), width, ranges.data(), step.data(), 0x80, levels.data()}, 0,
                       kRows);
      hash.add(levels);
      const int64_t bytes = codes::packed_bytes(width);
      std::vector<uint8_t> bits(static_cast<size_t>(kRows * bytes));
      use.codes.pack({x.data(), width, 0, bits.data()}, 0, kRows);
      hash.add(bits);
      std::vector<int32_t> distances(kRows * kRows);
      use.codes.hamming({bits.data(), bits.data(), kRows, kRows, bytes, distances.data()}, 0,
                        kRows);
      hash.add(distances);
    }
  });
}

void add_linear_int8(const InferenceKernels& use, int64_t scale_block, Hash& hash) {
  Numbers numbers(21);
  for (const int64_t rows : {1, 2, 5, 8, 30}) {
    const int64_t inner = 1 + numbers.below(150), outer = 1 + numbers.below(150);
    const int64_t scales = int8::scales(inner, scale_block);
    const auto x = numbers.floats(rows * inner), weight = numbers.floats(outer * inner);
    const auto bias = numbers.floats(outer);
    std::vector<int8_t> packed(static_cast<size_t>(int8::weight_bytes(inner, outer)));
    std::vector<float> units(static_cast<size_t>(int8::padded(outer) * scales));
    std::vector<int32_t> sums(units.size());
    const int64_t blocks = int8::padded(outer) / int8::kBlock;
    use.quantize_int8.pack(
        {weight.data(), inner, inner, outer, scale_block, packed.data(), units.data(), sums.data()},
        0, blocks);
    std::vector<uint8_t> bytes(static_cast<size_t>(rows * int8::row_bytes(inner)));
    std::vector<float> x_units(static_cast<size_t>(rows * scales));
    std::vector<int32_t> x_zeros(x_units.size());
    use.quantize_int8.quantize(
        {x.data(), inner, inner, scale_block, bytes.data(), x_units.data(), x_zeros.data()}, 0,
        rows);
    std::vector<float> out(static_cast<size_t>(rows * outer));
    use.linear_int8.run(
        {bytes.data(), x_units.data(), x_zeros.data(), rows, packed.data(), units.data(),
         sums.data(), bias.data(), inner, outer, scale_block, out.data(), outer},
        0, blocks);
    hash.add(packed);
    hash.add(units);
    hash.add(out);
  }
}

// int8.h's arithmetic has no fused step.
TEST(KernelBits, LinearInt8) {
  expect_hash(0x107f3a2f48e2071a,
              [](const InferenceKernels& use, Hash& hash) { add_linear_int8(use, 0, hash); });
}
TEST(KernelBits, LinearInt8WithScaleBlocks) {
  expect_hash(0x742ae5a0f352fa71,
              [](const InferenceKernels& use, Hash& hash) { add_linear_int8(use, 64, hash); });
}

}  // namespace
}  // namespace posenc::kernels
