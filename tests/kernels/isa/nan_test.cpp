// A NaN stays a NaN whatever its sign and payload: CPUs make 0x7fc00000 and 0xffc00000, CUDA
// 0x7fffffff.

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/isa/sets.h"

namespace posenc::kernels::inference {
namespace {

float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

const uint32_t kNaNs[] = {0x7fc00000, 0xffc00000, 0x7fffffff, 0xffffffff, 0x7f800001, 0x7fc000ff};

void on_each_nan(const std::function<void(const InferenceKernels&, float)>& f) {
  for (const uint32_t bits : kNaNs) {
    SCOPED_TRACE(bits);
    on_each_set([&](const InferenceKernels& use) { f(use, float_of(bits)); });
  }
}

bool all_nan(const std::vector<float>& x) {
  for (const float one : x)
    if (!std::isnan(one)) return false;
  return true;
}

TEST(NotANumber, InLogits) {
  on_each_nan([](const InferenceKernels& use, float nan) {
    for (size_t index = 0; index < 40; ++index) {
      std::vector<float> logits(40, 0.5F);
      logits[index] = nan;
      EXPECT_TRUE(std::isnan(use.topk.log_sum_exp(logits.data(), 40).rest)) << index;
    }
  });
}

TEST(NotANumber, InActivations) {
  on_each_nan([](const InferenceKernels& use, float nan) {
    for (const ActivationKernel& one : activations(use)) {
      if (one.activate == use.activation.relu.activate) continue;  // it has its own test
      std::vector<float> x(19, nan);
      one.activate(x.data(), 19);
      EXPECT_TRUE(all_nan(x));
    }
  });
}

constexpr int64_t kWidth = 4, kTokens = 20;

TEST(NotANumber, InTheBiasOfAStep) {
  on_each_nan([](const InferenceKernels& use, float nan) {
    const std::vector<float> query(kWidth, 0.5F), token(2 * kWidth, 0.25F);
    const std::vector<const float*> seen(kTokens, token.data());
    const float* const* const tokens[] = {seen.data()};
    const int64_t counts[] = {kTokens};
    std::vector<float> bias(kTokens, 0.0F), out(kWidth), scratch(kTokens + 16);
    bias[7] = nan;
    AttentionRequest request = {};
    request.query = query.data();
    request.query_stride = kWidth;
    request.heads = 1;
    request.width = kWidth;
    request.tokens = tokens;
    request.counts = counts;
    request.value = kWidth;
    request.scale = 1.0F;
    request.bias = bias.data();
    request.out = out.data();
    request.out_stride = kWidth;
    use.attention_step.attend(request, 0, 1, scratch.data());
    EXPECT_TRUE(all_nan(out));
  });
}

TEST(NotANumber, InTheBiasOfASequence) {
  on_each_nan([](const InferenceKernels& use, float nan) {
    const std::vector<float> rows(kTokens * kWidth, 0.5F);
    std::vector<float> bias(kTokens * kTokens, 0.0F), out(kTokens * kWidth);
    for (int64_t query = 0; query < kTokens; ++query) bias[query * kTokens + 7] = nan;
    const int64_t first[] = {0}, lengths[] = {kTokens};
    SequenceAttentionRequest request = {};
    request.query = rows.data();
    request.keys = rows.data();
    request.values = rows.data();
    request.query_stride = kWidth;
    request.key_stride = kWidth;
    request.heads = 1;
    request.width = kWidth;
    request.sequences = 1;
    request.query_first = first;
    request.key_first = first;
    request.query_lengths = lengths;
    request.key_lengths = lengths;
    request.scale = 1.0F;
    request.bias = bias.data();
    request.bias_strides[2] = kTokens;
    request.bias_strides[3] = 1;
    request.out = out.data();
    request.out_stride = kWidth;
    std::vector<float> scratch(static_cast<size_t>(sequence_floats(kWidth, kTokens)));
    use.attention_sequence.attend(request, 0, 1, scratch.data());
    EXPECT_TRUE(all_nan(out));
  });
}

}  // namespace
}  // namespace posenc::kernels::inference
