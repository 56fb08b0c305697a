// All shapes and deterministic values that the five notebooks print, to the printed precision.

#include <gtest/gtest.h>

#include <cmath>

#include "posenc/positions/functional/pad_sequences.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/timestep_embedding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"

namespace posenc {
namespace {

using Shape = std::vector<int64_t>;
using Rows = std::vector<std::vector<double>>;

// Equal to the output of print(): `half_unit` is half a unit of the last printed digit.
void expect_printed(const torch::Tensor& value, const std::vector<double>& printed,
                    double half_unit) {
  ASSERT_EQ(value.numel(), static_cast<int64_t>(printed.size()));
  for (size_t i = 0; i < printed.size(); ++i) {
    EXPECT_NEAR(value[i].item<double>(), printed[i], half_unit) << "element " << i;
  }
}

TEST(PrintedValues, Notebook00Exponents) {
  const auto even = torch::arange(0, 32, 2).to(torch::kFloat);
  expect_printed(even, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, 0);
  expect_printed(
      even * -std::log(10000.0),
      {-0.0000, -18.4207, -36.8414, -55.2620, -73.6827, -92.1034, -110.5241, -128.9448, -147.3654,
       -165.7861, -184.2068, -202.6275, -221.0482, -239.4689, -257.8895, -276.3102},
      5.1e-5);
  const std::vector<double> exponents = {-0.0000, -0.5756, -1.1513, -1.7269, -2.3026, -2.8782,
                                         -3.4539, -4.0295, -4.6052, -5.1808, -5.7565, -6.3321,
                                         -6.9078, -7.4834, -8.0590, -8.6347};
  expect_printed(even * (-std::log(10000.0) / 32), exponents, 5.1e-5);
  // These are the logarithms of the rates in the module's own table.
  const auto row = sinusoid_table(preset("vaswani2017", 32), 2)[1];
  for (int64_t i = 0; i < 16; ++i) {
    const double rate = std::atan2(row[2 * i].item<double>(), row[2 * i + 1].item<double>());
    EXPECT_NEAR(std::log(rate), exponents[i], 6e-5);
  }
}

TEST(PrintedValues, Notebook00Shapes) {
  PositionalEncoding position(512);
  EXPECT_EQ(position->pe.sizes(), (Shape{1, 5000, 512}));
  EXPECT_EQ(position->pe.slice(1, 0, 3).sizes(), (Shape{1, 3, 512}));
  EXPECT_EQ(position->pe.slice(2, 0, 3).sizes(), (Shape{1, 5000, 3}));
  InputEmbedding embedder(1000, 512, 10);
  const auto ids = torch::randint(0, 1000, {2, 10}, torch::kLong);
  EXPECT_EQ(ids.sizes(), (Shape{2, 10}));
  EXPECT_EQ(embedder->forward(ids).sizes(), (Shape{2, 10, 512}));
}

TEST(PrintedValues, Notebook01PaddedBatches) {
  const auto pad = [](std::vector<torch::Tensor> sequences) {
    return functional::pad_sequences(sequences, functional::PadSequencesOptions().max_len(5));
  };
  const auto input = pad({torch::tensor({1, 5}), torch::tensor({1, 1, 7, 2})});
  EXPECT_TRUE(input.ids.equal(torch::tensor({{1, 5, 0, 0, 0}, {1, 1, 7, 2, 0}})));
  EXPECT_TRUE(input.lengths.equal(torch::tensor({2, 4})));
  const auto label = pad({torch::tensor({3, 7, 3, 6}), torch::tensor({3, 7, 4})});
  EXPECT_TRUE(label.ids.equal(torch::tensor({{3, 7, 3, 6, 0}, {3, 7, 4, 0, 0}})));
  EXPECT_TRUE(label.lengths.equal(torch::tensor({4, 3})));
  TokenEmbedding tokens(8 + 1, 8);
  EXPECT_EQ(tokens->embedding->weight.sizes(), (Shape{9, 8}));
  EXPECT_EQ(tokens->forward(input.ids).sizes(), (Shape{2, 5, 8}));
}

TEST(PrintedValues, Notebook01Table) {
  const Rows printed = {
      {0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0},
      {8.4147e-01, 5.4030e-01, 9.9833e-02, 9.9500e-01, 9.9998e-03, 9.9995e-01, 1.0000e-03, 1.0},
      {9.0930e-01, -4.1615e-01, 1.9867e-01, 9.8007e-01, 1.9999e-02, 9.9980e-01, 2.0000e-03, 1.0},
      {1.4112e-01, -9.8999e-01, 2.9552e-01, 9.5534e-01, 2.9995e-02, 9.9955e-01, 3.0000e-03, 1.0},
      {-7.5680e-01, -6.5364e-01, 3.8942e-01, 9.2106e-01, 3.9989e-02, 9.9920e-01, 4.0000e-03,
       9.9999e-01}};
  const auto table = sinusoid_table(preset("notebook_001", 8), 5);
  for (int64_t p = 0; p < 5; ++p) expect_printed(table[p], printed[p], 5.1e-6);
}

TEST(PrintedValues, Notebook02TableAndShapes) {
  PositionEmbedding pe(PositionEmbeddingOptions(128).max_len(1000));
  EXPECT_EQ(pe->named_parameters()["embedding.weight"].sizes(), (Shape{1000, 128}));
  EXPECT_FALSE(pe->embedding->weight.requires_grad());
  const auto corner = [&](int64_t p) {
    const auto row = pe->embedding->weight[p];
    return torch::cat({row.slice(0, 0, 3), row.slice(0, 125)});
  };
  expect_printed(corner(0), {0, 1, 0, 1, 0, 1}, 5.1e-6);
  expect_printed(corner(1), {8.4147e-01, 5.4030e-01, 7.6172e-01, 1, 1.1548e-04, 1}, 5.1e-6);
  expect_printed(corner(2), {9.0930e-01, -4.1615e-01, 9.8705e-01, 1, 2.3096e-04, 1}, 5.1e-6);
  expect_printed(corner(997),
                 {-8.9797e-01, -4.4006e-01, 5.4092e-01, 9.9117e-01, 1.1488e-01, 9.9338e-01},
                 3.1e-5);
  expect_printed(corner(998),
                 {-8.5547e-01, 5.1785e-01, -2.9021e-01, 9.9116e-01, 1.1499e-01, 9.9337e-01},
                 3.1e-5);
  expect_printed(corner(999),
                 {-2.6461e-02, 9.9965e-01, -9.1697e-01, 9.9114e-01, 1.1511e-01, 9.9335e-01},
                 3.1e-5);

  const auto t =
      torch::tensor({40, 0, 6, 52, 47, 71, 96, 99, 52, 6, 98, 47, 57, 17, 5, 52}).view({16, 1});
  const auto rows = pe->forward(t);
  EXPECT_EQ(t.sizes(), (Shape{16, 1}));
  EXPECT_EQ(rows.sizes(), (Shape{16, 1, 128}));
  const auto ends = [&](int64_t i) {
    return torch::cat({rows[i][0].slice(0, 0, 3), rows[i][0].slice(0, 125)});
  };
  expect_printed(ends(0),
                 {7.4511e-01, -6.6694e-01, -8.0965e-02, 9.9999e-01, 4.6191e-03, 9.9999e-01}, 6e-6);
  expect_printed(ends(2), {-2.7942e-01, 9.6017e-01, -8.8542e-01, 1, 6.9287e-04, 1}, 6e-6);
  expect_printed(ends(13), {-9.6140e-01, -2.7516e-01, 8.3414e-01, 1, 1.9631e-03, 1}, 6e-6);
  expect_printed(ends(14), {-9.5892e-01, 2.8366e-01, -9.2771e-01, 1, 5.7739e-04, 1}, 6e-6);
  expect_printed(ends(15),
                 {9.8663e-01, -1.6299e-01, 8.6635e-01, 9.9998e-01, 6.0048e-03, 9.9998e-01}, 6e-6);

  TimestepEmbedding timestep(128, 1);
  EXPECT_EQ(timestep->pe_linear->forward(rows).sizes(), (Shape{16, 1, 1}));
  EXPECT_EQ(timestep->forward(t).sizes(), (Shape{16, 1, 1, 1}));
  EXPECT_EQ(timestep->add_to(torch::randn({1, 28, 28}), t).sizes(), (Shape{16, 1, 28, 28}));
  EXPECT_EQ(pe->forward(torch::randint(0, 100, {16}, torch::kLong)).sizes(), (Shape{16, 128}));
  EXPECT_EQ(pe->forward(torch::randint(0, 100, {16, 2}, torch::kLong)).sizes(),
            (Shape{16, 2, 128}));
}

TEST(PrintedValues, Notebook03Defaults) {
  TokenAndPositionEmbedding module(50, 128);
  EXPECT_EQ(module->position_encoding->pe.sizes(), (Shape{1, 5000, 128}));
  EXPECT_DOUBLE_EQ(module->dropout->options.p(), 0.1);
  EXPECT_TRUE(module->options.scale().is_sqrt_dim());
}

TEST(PrintedValues, Notebook04Shapes) {
  const auto ids = torch::arange(0, 4).unsqueeze(0).expand({2, -1});
  EXPECT_TRUE(ids.equal(torch::tensor({{0, 1, 2, 3}, {0, 1, 2, 3}})));
  PositionEmbedding pe(PositionEmbeddingOptions(6).max_len(10).register_as(
      PositionEmbeddingOptions::RegisterAs::Buffer));
  EXPECT_EQ(pe->pos_enc.sizes(), (Shape{10, 6}));
  EXPECT_EQ(pe->forward(ids).sizes(), (Shape{2, 4, 6}));
}

}  // namespace
}  // namespace posenc
