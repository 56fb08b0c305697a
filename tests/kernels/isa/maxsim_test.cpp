// Largest products of queries with the rows of documents against at::matmul and at::amax in
// float64: any lengths, widths and splits.

#include <ATen/ops/matmul.h>

#include <limits>

#include "kernels/isa/sets.h"
#include "support/dice.h"
#include "support/seed.h"

namespace posenc::kernels::inference::maxsim_test {
namespace {

using testing::Op;

struct Case {
  torch::Tensor query, documents;
  std::vector<int64_t> first = {0};

  Case(int64_t rows, int64_t width, const std::vector<int64_t>& lengths)
      : query(torch::randn({rows, width})) {
    for (const int64_t length : lengths) first.push_back(first.back() + length);
    documents = torch::randn({first.back(), width});
  }
  int64_t size() const { return static_cast<int64_t>(first.size()) - 1; }

  torch::Tensor expected() const {
    const auto out = torch::full({size()}, kEmptyDocument, torch::kDouble);
    for (int64_t i = 0; i < size(); ++i) {
      const int64_t count = first[i + 1] - first[i];
      if (count == 0) continue;
      const auto rows = documents.narrow(0, first[i], count).to(torch::kDouble);
      out[i] = query.size(0) == 0 ? torch::zeros({}, torch::kDouble)
                                  : at::matmul(query.to(torch::kDouble), rows.t()).amax(1).sum();
    }
    return out;
  }
  torch::Tensor run(const InferenceKernels& use, int64_t split) const {
    const int64_t width = query.size(1);
    std::vector<float> packed(static_cast<size_t>(maxsim_floats(query.size(0), width)));
    use.maxsim.pack(query.const_data_ptr<float>(), query.size(0), width, packed.data());
    const auto out = torch::full({size()}, 7.0F);
    const MaxSimRequest request = {packed.data(), query.size(0),
                                   width,         documents.const_data_ptr<float>(),
                                   first.data(),  out.data_ptr<float>()};
    for (int64_t i = 0; i < size(); i += split)
      use.maxsim.score(request, i, std::min(i + split, size()));
    return out;
  }
};

TEST(MaxSim, IsTheSumOfTheLargestProducts) {
  testing::Dice dice(17);
  for (int number = 0; number < 60; ++number) {
    std::vector<int64_t> lengths;
    for (int64_t i = 1 + dice.below(12); i > 0; --i)
      lengths.push_back(dice.below(dice.coin() ? 4 : 71));
    const Case one(dice.below(dice.coin() ? 21 : 111), 1 + dice.below(140), lengths);
    SCOPED_TRACE(testing::message_of([&] { TORCH_CHECK(false, one.query.sizes(), lengths); }));
    expect_on_each_set(Op::LongSums, one.expected(), [&](const InferenceKernels& use) {
      const auto whole = one.run(use, one.size());
      EXPECT_TRUE(testing::bit_equal(one.run(use, 1), whole));
      EXPECT_TRUE(testing::bit_equal(one.run(use, 3), whole));
      return whole;
    });
  }
}

TEST(MaxSim, ANumberThatIsNotFiniteReachesItsOwnScoresAlone) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Case one(33, 5, {4, 6, 3});
  const auto plain = one;
  one.documents = plain.documents.clone();
  one.documents[5][2] = kNaN;
  one.documents[10] = 0.0;
  one.documents[10][0] = kInf;
  one.query = plain.query.abs();
  on_each_set([&](const InferenceKernels& use) {
    const auto got = one.run(use, 3);
    Case same = one;
    same.documents = plain.documents;
    EXPECT_TRUE(testing::bit_equal(got[0], same.run(use, 3)[0]));
    EXPECT_TRUE(got[1].isnan().item<bool>());
    EXPECT_EQ(got[2].item<float>(), kInf);
  });
}

}  // namespace
}  // namespace posenc::kernels::inference::maxsim_test
