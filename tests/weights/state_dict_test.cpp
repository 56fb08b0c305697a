#include "posenc/weights/state_dict.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "weights/support.h"

namespace posenc::testing::state_dict_test {
namespace {

using Names = std::vector<std::string>;

// Deliberately registered out of order: a child first, a buffer before a parameter.
struct Model : torch::nn::Module {
  Model() {
    inner = register_module("inner", torch::nn::Linear(2, 3));
    inner->register_buffer("offset", at::full({1}, 3.0f));
    mean = register_buffer("mean", at::full({2}, 7.0f));
    scale = register_parameter("scale", at::full({3, 2}, 0.5f));
    counter = register_buffer("counter", at::scalar_tensor(5, at::kLong));
    stack = register_module(
        "stack",
        torch::nn::Sequential(torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false))));
  }
  torch::nn::Linear inner{nullptr};
  at::Tensor mean, scale, counter;
  torch::nn::Sequential stack{nullptr};
};

const Names kModelNames = {"scale",      "mean",         "counter",       "inner.weight",
                           "inner.bias", "inner.offset", "stack.0.weight"};

// One table under two names, and one child under two names.
struct Tied : torch::nn::Module {
  Tied() {
    table = register_parameter("table", at::ones({4, 2}));
    register_parameter("output", table);
    child = register_module("first", torch::nn::Linear(2, 2));
    register_module("second", child);
  }
  at::Tensor table;
  torch::nn::Linear child{nullptr};
};

StateDict other_values(const torch::nn::Module& module) {
  StateDict tensors;
  for (const auto& item : state_dict(module)) {
    tensors.insert(item.key(), at::full_like(item.value(), 11).detach());
  }
  return tensors;
}

StateDict without(const StateDict& tensors, const std::string& name) {
  StateDict fewer;
  for (const auto& item : tensors) {
    if (item.key() != name) fewer.insert(item.key(), item.value());
  }
  return fewer;
}

// Expects an error, and no change in any bit of the module or its tensors.
std::string refused(torch::nn::Module& module, const StateDict& tensors,
                    const LoadOptions& options = {}) {
  std::vector<std::string> before;
  for (const auto& item : state_dict(module)) before.push_back(bits(item.value()));
  const auto message = refusal([&] { load_state_dict(module, tensors, options); });
  std::vector<std::string> after;
  for (const auto& item : state_dict(module)) after.push_back(bits(item.value()));
  EXPECT_EQ(before, after);
  EXPECT_CONTAINS(message, "[load_state_dict] ");
  return message;
}

TEST(StateDict, HasPythonsOrder) { EXPECT_EQ(names(state_dict(Model())), kModelNames); }

TEST(StateDict, SharesTheModulesMemory) {
  const auto model = std::make_shared<Model>();
  EXPECT_TRUE(state_dict(*model)["mean"].is_same(model->mean));
  EXPECT_TRUE(state_dict(*model)["inner.weight"].is_same(model->inner->weight));
}

TEST(StateDict, ListsTiesUnderBothNames) {
  EXPECT_EQ(names(state_dict(Tied())), (Names{"table", "output", "first.weight", "first.bias",
                                              "second.weight", "second.bias"}));
}

TEST(LoadStateDict, CopiesEverythingAndKeepsTheTensors) {
  Model model;
  model.inner->weight.requires_grad_(false);
  const auto before = state_dict(model);
  const auto tensors = other_values(model);
  const auto report = load_state_dict(model, tensors);
  EXPECT_EQ(report.loaded, kModelNames);
  EXPECT_EQ(report.missing, Names{});
  EXPECT_EQ(report.unexpected, Names{});
  for (const auto& item : state_dict(model)) {
    EXPECT_TRUE(identical(item.value(), tensors[item.key()])) << item.key();
    EXPECT_TRUE(item.value().is_same(before[item.key()])) << item.key();
  }
  EXPECT_TRUE(model.scale.requires_grad());
  EXPECT_TRUE(model.inner->bias.requires_grad());
  EXPECT_FALSE(model.inner->weight.requires_grad());
  EXPECT_TRUE(model.scale.is_leaf());
}

TEST(LoadStateDict, RefusesAMissingName) {
  Model model;
  const auto message = refused(model, without(other_values(model), "inner.bias"));
  EXPECT_CONTAINS(message, "missing (1):\n    'inner.bias'");
  EXPECT_LACKS(message, "unexpected");
}

TEST(LoadStateDict, RefusesAnUnexpectedNameAndSaysWhatIsNear) {
  Model model;
  auto tensors = without(other_values(model), "inner.bias");
  tensors.insert("inner.bais", at::zeros({3}));
  tensors.insert("something.quite.different.in.length", at::zeros({3}));
  const auto message = refused(model, tensors);
  EXPECT_CONTAINS(message, "missing (1):\n    'inner.bias' (did you mean 'inner.bais'?)");
  EXPECT_CONTAINS(message,
                  "unexpected (2):\n    'inner.bais' (did you mean 'inner.bias'?)\n    'something");
}

TEST(LoadStateDict, RefusesAnotherShape) {
  Model model;
  auto tensors = other_values(model);
  tensors["scale"] = at::zeros({2, 3});  // same number of elements: could go unnoticed
  EXPECT_CONTAINS(refused(model, tensors), "'scale' must have shape (3, 2). Got (2, 3)");
  tensors["scale"] = at::zeros({2});  // would broadcast
  EXPECT_CONTAINS(refused(model, tensors), "'scale' must have shape (3, 2). Got (2)");
  tensors["scale"] = at::zeros({});
  EXPECT_CONTAINS(refused(model, tensors), "Got ()");
}

TEST(LoadStateDict, RefusesAnotherDtype) {
  Model model;
  auto tensors = other_values(model);
  tensors["scale"] = at::zeros({3, 2}, at::kDouble);
  EXPECT_CONTAINS(refused(model, tensors), "'scale' must have dtype float32. Got float64");
  tensors["scale"] = at::zeros({3, 2}, at::kInt);  // same element size
  EXPECT_CONTAINS(refused(model, tensors), "'scale' must have dtype float32. Got int32");
}

TEST(LoadStateDict, ListsAllFaultsTogether) {
  Model model;
  auto tensors = without(other_values(model), "inner.bias");
  tensors.insert("extra", at::zeros({1}));
  tensors["scale"] = at::zeros({6});
  tensors["mean"] = at::zeros({2}, at::kHalf);
  tensors["counter"] = at::zeros({1}, at::kInt);  // two errors
  const auto message = refused(model, tensors);
  EXPECT_CONTAINS(message, "missing (1):\n    'inner.bias'");
  EXPECT_CONTAINS(message, "unexpected (1):\n    'extra'");
  EXPECT_CONTAINS(message, "'scale' must have shape (3, 2). Got (6)");
  EXPECT_CONTAINS(message, "'mean' must have dtype float32. Got float16");
  EXPECT_CONTAINS(message, "'counter' must have shape (). Got (1)");
  EXPECT_CONTAINS(message, "'counter' must have dtype int64. Got int32");
}

TEST(LoadStateDict, RefusesWhatHoldsNoData) {
  Model model;
  auto tensors = other_values(model);
  tensors["mean"] = at::Tensor();
  EXPECT_CONTAINS(refused(model, tensors), "'mean' must be a defined tensor");
  tensors["mean"] = at::zeros({2}).to_sparse();
  EXPECT_CONTAINS(refused(model, tensors), "'mean' must be dense");
  tensors["mean"] = at::zeros({2}, at::device(at::kMeta));
  EXPECT_CONTAINS(refused(model, tensors), "'mean' must be dense and hold data");
}

TEST(LoadStateDict, RefusesAModuleThatCannotBeWritten) {
  struct Expanded : torch::nn::Module {
    Expanded() {
      register_buffer("fine", at::zeros({2}));
      register_buffer("wide", at::zeros({1}).expand({4}));
    }
  } expanded;
  EXPECT_CONTAINS(refused(expanded, other_values(expanded)), "'wide' must have an element for");

  struct Meta : torch::nn::Module {
    Meta() { register_buffer("none", at::zeros({2}, at::device(at::kMeta))); }
  } meta;
  StateDict tensors;
  tensors.insert("none", at::zeros({2}));
  EXPECT_CONTAINS(refusal([&] { load_state_dict(meta, tensors); }), "on the meta device");
}

TEST(LoadStateDict, OverlooksWhatItMay) {
  Model model;
  const auto bias = bits(model.inner->bias);
  auto tensors = without(other_values(model), "inner.bias");
  tensors.insert("extra", at::zeros({1}));
  EXPECT_CONTAINS(refused(model, tensors, LoadOptions().allow_missing(true)), "unexpected (1)");
  EXPECT_CONTAINS(refused(model, tensors, LoadOptions().allow_unexpected(true)), "missing (1)");
  const auto report =
      load_state_dict(model, tensors, LoadOptions().allow_missing(true).allow_unexpected(true));
  EXPECT_EQ(report.missing, Names{"inner.bias"});
  EXPECT_EQ(report.unexpected, Names{"extra"});
  EXPECT_EQ(report.loaded.size(), 6u);
  EXPECT_EQ(bits(model.inner->bias), bias);
  EXPECT_TRUE(at::equal(model.mean, at::full({2}, 11.0f)));
}

TEST(LoadStateDict, AllowancesDoNotCoverShapes) {
  Model model;
  auto tensors = other_values(model);
  tensors["scale"] = at::zeros({6});
  refused(model, tensors, LoadOptions().allow_missing(true).allow_unexpected(true));
}

TEST(LoadStateDict, APrefixSelects) {
  Model model;
  StateDict tensors;
  for (const auto& item : other_values(model)) tensors.insert("net." + item.key(), item.value());
  tensors.insert("head.weight", at::zeros({9}));
  const auto message = refused(model, tensors);
  EXPECT_CONTAINS(message,
                  "all missing names are there below `net.`: LoadOptions().prefix(\"net.\")");
  EXPECT_EQ(load_state_dict(model, tensors, LoadOptions().prefix("net.")).loaded, kModelNames);

  tensors.insert("net.extra", at::zeros({1}));
  EXPECT_CONTAINS(refused(model, tensors, LoadOptions().prefix("net.")), "'net.extra'");
  const LoadOptions lenient = LoadOptions().prefix("nte.").allow_missing(true);
  EXPECT_CONTAINS(refused(model, tensors, lenient), "no name begins with 'nte.'");
}

TEST(LoadStateDict, ATieNeedsOneOfItsNames) {
  for (const char* dropped : {"table", "output"}) {
    Tied model;
    auto tensors = without(other_values(model), dropped);
    tensors = without(without(tensors, "first.weight"), "second.bias");
    const auto report = load_state_dict(model, tensors);
    EXPECT_EQ(report.loaded, names(state_dict(model)));
    EXPECT_EQ(report.missing, Names{});
    EXPECT_TRUE(at::equal(model.table, at::full({4, 2}, 11.0f)));
    EXPECT_TRUE(at::equal(model.child->weight, at::full({2, 2}, 11.0f)));
    EXPECT_TRUE(state_dict(model)["output"].is_same(model.table));
  }
}

TEST(LoadStateDict, TiedNamesMustAgree) {
  Tied model;
  auto tensors = other_values(model);
  load_state_dict(model, tensors);
  tensors["output"] = at::full({4, 2}, 12.0f);
  EXPECT_CONTAINS(refused(model, tensors),
                  "'table' and 'output' are one tensor in the module, but differ");
  // NaNs are equal if their bits are.
  tensors["table"] = at::full({4, 2}, NAN);
  tensors["output"] = at::full({4, 2}, NAN);
  load_state_dict(model, tensors);
  // -0.0 is not 0.0.
  tensors["table"] = at::full({4, 2}, -0.0f);
  tensors["output"] = at::full({4, 2}, 0.0f);
  refused(model, tensors);
}

TEST(LoadStateDict, ReadsViewsAndTheModulesOwnMemory) {
  Model model;
  auto tensors = other_values(model);
  tensors["scale"] = at::arange(6, at::kFloat).view({2, 3}).t();
  load_state_dict(model, tensors);
  EXPECT_TRUE(at::equal(model.scale, tensors["scale"]));

  const auto weight = model.stack->at<torch::nn::LinearImpl>(0).weight;
  load_state_dict(model, state_dict(model));  // onto itself
  tensors = other_values(model);
  {
    const at::NoGradGuard no_grad;
    weight.copy_(at::arange(4, at::kFloat).view({2, 2}));
  }
  tensors["stack.0.weight"] = weight.t();
  load_state_dict(model, tensors);
  EXPECT_TRUE(at::equal(weight, at::arange(4, at::kFloat).view({2, 2}).t()));
}

TEST(LoadStateDict, ALongListIsCutOff) {
  struct Empty : torch::nn::Module {
  } module;
  StateDict tensors;
  for (int i = 0; i < 5000; ++i) tensors.insert("name" + std::to_string(i), at::zeros({1}));
  const auto message = refusal([&] { load_state_dict(module, tensors); });
  EXPECT_CONTAINS(message, "unexpected (5000):\n    'name0'");
  EXPECT_CONTAINS(message, "'name9'\n    and 4990 more");
}

}  // namespace
}  // namespace posenc::testing::state_dict_test
