#include "support/parity.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <map>

namespace posenc::testing {
namespace {

void expect_own_table(const Fixture& fixture, const torch::Tensor& own,
                      const torch::Tensor& theirs) {
  if (fixture.live) {
    EXPECT_TRUE(bit_equal(own, theirs)) << "the table";
    return;
  }
  // A half type adds a rounding of its own, so its bound is wider.
  const double slack = own.scalar_type() == torch::kBFloat16 ? 8e-3
                       : own.scalar_type() == torch::kHalf   ? 1e-3
                                                             : 0.0;
  if (slack > 0.0) {
    const auto comparison = compare_tensors(own, theirs, Tolerance().atol(slack));
    EXPECT_TRUE(comparison.ok) << "the table: " << comparison;
  } else {
    EXPECT_TRUE(within(Op::ForeignTable, own.to(torch::kFloat), theirs.to(torch::kFloat)))
        << "the table";
  }
}

torch::Dtype dtype_of(const Fixture& fixture) {
  const std::map<std::string, torch::Dtype> names = {{"float32", torch::kFloat},
                                                     {"float64", torch::kDouble},
                                                     {"bfloat16", torch::kBFloat16},
                                                     {"float16", torch::kHalf}};
  return names.at(fixture.option<std::string>("dtype", "float32"));
}

}  // namespace

void expect_parity(const Fixture& fixture, torch::nn::Module& module,
                   const std::function<torch::Tensor(const Golden&)>& call,
                   const ParityOptions& options) {
  SCOPED_TRACE(fixture.name);
  module.to(dtype_of(fixture));
  if (!options.table.empty()) {
    expect_own_table(fixture, state_dict(module)[options.table], fixture["param." + options.table]);
  }
  Golden golden = fixture.golden();
  golden.load_into(module, LoadOptions().key_map(options.renamed));
  module.train(fixture.option("train", false));
  torch::manual_seed(fixture.seed);
  const torch::Tensor output = call(golden);
  const auto report = golden.compare(output, tolerance_of(options.forward, dtype_of(fixture)));
  EXPECT_TRUE(report.ok()) << report;
  if (!fixture.has("in.cotangent")) return;
  const bool bits = fixture.live && options.forward == Op::Forward;
  const auto gradients = golden.compare_gradients(
      module, output, bits ? Tolerance() : tolerance_of(options.gradient, dtype_of(fixture)));
  EXPECT_TRUE(gradients.ok()) << gradients;
}

}  // namespace posenc::testing
