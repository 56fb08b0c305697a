#include "posenc/models/functional/similarity.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <iterator>

#include "support/compare.h"

namespace posenc::testing {
namespace {

namespace F = posenc::functional;
using Similarity = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
using SparseSimilarity = at::Tensor (*)(const SparseVectors&, const SparseVectors&);
constexpr Similarity kCosine = F::cosine_similarity, kDot = F::dot_product,
                     kEuclidean = F::euclidean_similarity, kManhattan = F::manhattan_similarity;
constexpr Similarity kAll[] = {kCosine, kDot, kEuclidean, kManhattan};
constexpr SparseSimilarity kSparse[] = {F::cosine_similarity, F::dot_product,
                                        F::euclidean_similarity, F::manhattan_similarity};

// The definitions, pair by pair, in float64.
torch::Tensor defined(Similarity similarity, const torch::Tensor& a, const torch::Tensor& b) {
  const auto x = a.to(torch::kDouble).unsqueeze(1), y = b.to(torch::kDouble).unsqueeze(0);
  if (similarity == kDot) return (x * y).sum(-1);
  if (similarity == kEuclidean) return -(x - y).square().sum(-1).sqrt();
  if (similarity == kManhattan) return -(x - y).abs().sum(-1);
  const auto length = [](const torch::Tensor& v) { return v.norm(2, -1).clamp_min(1e-12); };
  return (x * y).sum(-1) / (length(x) * length(y));
}

torch::Tensor mostly_zeros(int64_t count, int64_t width) {
  return torch::where(torch::rand({count, width}) < 0.2, torch::randn({count, width}), 0.0);
}

SparseVectors sparse(const torch::Tensor& rows) {
  const auto csr = rows.to_sparse_csr();
  return {csr.crow_indices(), csr.col_indices(), csr.values(), rows.size(1)};
}

TEST(Similarity, IsThatOfEachPairOfRows) {
  torch::manual_seed(1);
  const auto a = torch::randn({7, 33}), b = torch::randn({40, 33});
  for (const Similarity similarity : kAll) {
    const auto expected = defined(similarity, a, b);
    EXPECT_TRUE(similarity(a, b).allclose(expected.to(torch::kFloat), 1e-5, 1e-5));
    EXPECT_TRUE(similarity(a.to(torch::kDouble), b.to(torch::kDouble)).allclose(expected));
    const auto half = similarity(a.to(torch::kBFloat16), b.to(torch::kBFloat16));
    EXPECT_EQ(half.scalar_type(), torch::kBFloat16);
    EXPECT_TRUE(half.to(torch::kDouble).allclose(expected, 2e-2, 1e-1));
    EXPECT_EQ(similarity(a, b.narrow(0, 0, 0)).sizes(), (std::vector<int64_t>{7, 0}));
  }
}

// More rows than those for which torch::cdist changes to products.
TEST(Similarity, NearRowsKeepTheirDistance) {
  const auto a = torch::randn({40, 64}) + 100.0, b = a + 1e-3 * torch::randn({40, 64});
  EXPECT_TRUE(F::euclidean_similarity(a, b).diagonal().allclose(
      defined(kEuclidean, a, b).diagonal().to(torch::kFloat), 1e-5, 0.0));
  EXPECT_TRUE(bit_equal(F::euclidean_similarity(a, a).diagonal(), -torch::zeros({40})));
}

TEST(Similarity, RowsOfZerosHaveTheCosineZero) {
  const auto cosine = F::cosine_similarity(torch::zeros({1, 4}), torch::ones({2, 4}));
  EXPECT_TRUE(bit_equal(cosine, torch::zeros({1, 2})));
}

TEST(Similarity, SparseRowsHaveThatOfTheSameDenseOnes) {
  torch::manual_seed(2);
  for (const int64_t count : {1, 300}) {
    auto a = mostly_zeros(3, 500), b = mostly_zeros(count, 500);
    b[0].zero_();
    b = torch::cat({b, a});
    for (std::size_t i = 0; i < std::size(kAll); ++i) {
      const auto expected = defined(kAll[i], a, b).to(torch::kFloat);
      const auto got = kSparse[i](sparse(a), sparse(b));
      EXPECT_TRUE(got.allclose(expected, 1e-5, 1e-6)) << (got - expected).abs().max();
    }
  }
  const auto a = mostly_zeros(3, 50);
  EXPECT_TRUE(bit_equal(sparse(a).to_torch().to_dense(), a));
  EXPECT_EQ(F::dot_product(sparse(a), sparse(a.narrow(0, 0, 0))).sizes(),
            (std::vector<int64_t>{3, 0}));
}

TEST(Similarity, HasTheGradientsOfItsDefinition) {
  torch::manual_seed(3);
  const auto a = torch::randn({3, 5}, torch::kDouble).requires_grad_();
  const auto b = torch::randn({30, 5}, torch::kDouble).requires_grad_();
  const auto upstream = torch::randn({3, 30}, torch::kDouble);
  for (const Similarity similarity : kAll) {
    const auto got = torch::autograd::grad({similarity(a, b)}, {a, b}, {upstream});
    const auto expected = torch::autograd::grad({defined(similarity, a, b)}, {a, b}, {upstream});
    EXPECT_TRUE(got[0].allclose(expected[0]));
    EXPECT_TRUE(got[1].allclose(expected[1]));
  }
}

TEST(Similarity, Errors) {
  const auto a = torch::randn({2, 3});
  EXPECT_ERROR(F::dot_product(a[0], a), c10::ValueError,
               "[dot_product] vectors must be rows (N, D). Got [3]");
  EXPECT_ERROR(F::cosine_similarity(a, a.to(torch::kLong)), c10::TypeError,
               "[cosine_similarity] vectors must be floating-point. Got Long");
  EXPECT_ERROR(F::manhattan_similarity(a, a.to(torch::kDouble)), c10::TypeError,
               "[manhattan_similarity] both must have one dtype. Got Float and Double");
  EXPECT_ERROR(F::euclidean_similarity(a, a.t()), c10::ValueError,
               "[euclidean_similarity] both must have one width. Got [2, 3] and [3, 2]");
}

TEST(Similarity, ErrorsOfSparseVectors) {
  const auto a = sparse(torch::ones({2, 3}));
  const auto with_columns = [&](std::vector<int64_t> columns) {
    return SparseVectors{a.crow_indices, torch::tensor(columns), a.values, 3};
  };
  const auto with_rows = [&](std::vector<int64_t> rows) {
    return SparseVectors{torch::tensor(rows), a.col_indices, a.values, 3};
  };
  EXPECT_ERROR(F::dot_product(a, with_columns({0, 1, 2, 0, 1, 7})), c10::ValueError,
               "[dot_product] col_indices must ascend in each row, from 0 to below the width, 3. "
               "Got 7 after 1 in row 1");
  EXPECT_ERROR(F::dot_product(with_columns({0, 1, 1, 0, 1, 2}), a), c10::ValueError,
               "Got 1 after 1 in row 0");
  EXPECT_ERROR(F::manhattan_similarity(a, with_columns({-1, 1, 2, 0, 1, 2})), c10::ValueError,
               "Got -1 after -1 in row 0");
  EXPECT_ERROR(F::cosine_similarity(a, with_columns({0, 1, 2})), c10::ValueError,
               "[cosine_similarity] there must be an index for each value. Got [3] for [6]");
  EXPECT_ERROR(F::dot_product(with_rows({0, 9, 6}), a), c10::ValueError,
               "[dot_product] crow_indices must ascend to the number of values, 6. Got 9 after 0");
  EXPECT_ERROR(F::dot_product(with_rows({0, 3, 5}), a), c10::ValueError,
               "[dot_product] crow_indices must go from 0 to the number of values, 6");
  EXPECT_ERROR(F::euclidean_similarity(a, sparse(torch::ones({2, 4}))), c10::ValueError,
               "[euclidean_similarity] both must have one width. Got 3 and 4");
  EXPECT_ERROR(F::dot_product(a, sparse(torch::ones({2, 3}, torch::kDouble))), c10::TypeError,
               "[dot_product] values must be float32. Got Double");
}

}  // namespace
}  // namespace posenc::testing
