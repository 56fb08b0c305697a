#include "support/parity.h"
#include "posenc/io/load.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace posenc::testing {
namespace {

void expect_own_table(const Fixture& fixture, const torch::Tensor& own,
                      const torch::Tensor& theirs) {
  if (fixture.live) {
    EXPECT_TRUE(bit_equal(own, theirs)) << "the table";
    return;
  }
  const auto theirs_wide = theirs.to(torch::kFloat);
  // A half type adds a rounding of its own, so its bound is wider.
  const double slack = own.scalar_type() == torch::kBFloat16 ? 8e-3
                       : own.scalar_type() == torch::kHalf   ? 1e-3
                                                             : 0.0;
  if (slack > 0.0) {
    EXPECT_LE((own.to(torch::kFloat) - theirs_wide).abs().max().item<double>(), slack);
  } else {
    EXPECT_TRUE(within(Op::ForeignTable, own.to(torch::kFloat), theirs_wide)) << "the table";
  }
}

StateDict parameters(const Fixture& fixture, const ParityOptions& options) {
  StateDict result;
  for (const auto& item : fixture.under("param.")) {
    const auto other = options.renamed.find(item.key());
    result.insert(other == options.renamed.end() ? item.key() : other->second, item.value());
  }
  return result;
}

}  // namespace

torch::Dtype dtype_of(const Fixture& fixture) {
  const std::map<std::string, torch::Dtype> names = {{"float32", torch::kFloat},
                                                     {"float64", torch::kDouble},
                                                     {"bfloat16", torch::kBFloat16},
                                                     {"float16", torch::kHalf}};
  return names.at(fixture.option<std::string>("dtype", "float32"));
}

void expect_parity(const Fixture& fixture, torch::nn::Module& module,
                   const std::function<torch::Tensor(const Inputs&)>& call,
                   const ParityOptions& options) {
  SCOPED_TRACE(fixture.name);
  module.to(dtype_of(fixture));
  const StateDict theirs = parameters(fixture, options);
  if (!options.table.empty()) {
    expect_own_table(fixture, state_dict(module)[options.table], theirs[options.table]);
  }
  load_state_dict(module, theirs);
  module.train(fixture.option("train", false));
  module.zero_grad();

  Inputs inputs;
  for (const auto& item : fixture.under("in.")) {
    auto leaf = item.value().clone();
    inputs[item.key()] = leaf.is_floating_point() ? leaf.requires_grad_(true) : leaf;
  }
  torch::manual_seed(fixture.seed);
  const torch::Tensor output = call(inputs);
  EXPECT_TRUE(within(options.forward, output, fixture["out.output"])) << "the output";
  const bool bits = fixture.live && options.forward == Op::Forward;
  if (bits) {
    EXPECT_TRUE(bit_equal(output, fixture["out.output"])) << "the output's bits";
  }

  if (!fixture.has("in.cotangent")) return;
  (output * fixture["in.cotangent"]).sum().backward();
  int64_t compared = 0;
  for (const auto& item : fixture.under("grad.")) {
    SCOPED_TRACE("gradient of " + item.key());
    ++compared;
    if (item.key().rfind("in.", 0) == 0) {
      EXPECT_TRUE(within(options.gradient, inputs.at(item.key().substr(3)).grad(), item.value()));
      continue;
    }
    const auto other = options.renamed.find(item.key());
    const auto& key = other == options.renamed.end() ? item.key() : other->second;
    const auto gradient = module.named_parameters()[key].grad();
    EXPECT_TRUE(within(options.gradient, gradient, item.value()));
    if (bits) {
      EXPECT_TRUE(bit_equal(gradient, item.value()));
    }
  }
  EXPECT_GT(compared, 0) << "a fixture with a cotangent has gradients";
}

}  // namespace posenc::testing
