// Each of LoadOptions, and what a module declares through StateDictTraits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "weights/load/key_map.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Names = std::vector<std::string>;
using Code = WeightsErrorCode;

StateDict dict(const std::vector<std::pair<std::string, at::Tensor>>& items) {
  StateDict tensors;
  for (const auto& [name, tensor] : items) tensors.insert(name, tensor);
  return tensors;
}

std::string mapped(const std::string& name, const KeyMap& map) {
  const auto found = io::find_rule(name, map);
  if (!found) return name;
  const std::string& to = map[found->rule].name;
  return to.empty() ? "(left out)" : io::fill_pattern(to, found->runs);
}

TEST(KeyMap, RenamesWholeNames) {
  const KeyMap map = {{"a.gamma", "a.weight"},
                      {"h.*.attn.*", "layers.*.attention.*"},
                      {"h.*", "other.*"},
                      {"head.*", ""},
                      {"*.kernel", "*.weight"}};
  EXPECT_EQ(mapped("a.gamma", map), "a.weight");
  EXPECT_EQ(mapped("a.gamma2", map), "a.gamma2");
  EXPECT_EQ(mapped("h.10.attn.q.bias", map), "layers.10.attention.q.bias");
  EXPECT_EQ(mapped("h.10.mlp", map), "other.10.mlp");
  EXPECT_EQ(mapped("head.weight", map), "(left out)");
  EXPECT_EQ(mapped("b.c.kernel", map), "b.c.weight");
  EXPECT_EQ(mapped("kernel", map), "kernel");
}

TEST(KeyMap, AStarIsTheShortestRunThatFits) {
  EXPECT_EQ(mapped("a.x.b.y.b.z", {{"a.*.b.*", "*|*"}}), "x|y.b.z");
  EXPECT_EQ(mapped("a..b", {{"a.*.b", "<*>"}}), "<>");
  EXPECT_EQ(mapped("a.b", {{"a.*.b", "<*>"}}), "a.b");  // the two dots must be distinct
  EXPECT_EQ(mapped("aa", {{"a*a", "<*>"}}), "<>");
  EXPECT_EQ(mapped("a", {{"a*a", "<*>"}}), "a");
  EXPECT_EQ(mapped("anything", {{"*", "m.*"}}), "m.anything");
  EXPECT_EQ(mapped("abcbc", {{"*bc", "<*>"}}), "<abc>");
}

TEST(KeyMap, ANewNameHasNoMoreStarsThanItsPattern) {
  torch::nn::Linear module(1, 1);
  const auto options = LoadOptions().key_map({{"a", "b.*"}});
  EXPECT_THROW(load_state_dict(*module, StateDict(), options), c10::ValueError);
}

TEST(KeyMap, AppliesBehindThePrefixAndInReports) {
  torch::nn::Linear module(2, 1);
  const auto tensors = dict(
      {{"net.kernel", at::ones({1, 2})}, {"net.bias", at::ones({1})}, {"net.step", at::ones({1})}});
  const auto report = load_state_dict(
      *module, tensors, LoadOptions().prefix("net.").key_map({{"kernel", "weight"}, {"step", ""}}));
  EXPECT_EQ(report.loaded, (Names{"weight", "bias"}));
  EXPECT_EQ(report.ignored, Names{"net.step"});
}

TEST(KeyMap, TwoNamesForOneTensorAreRefused) {
  torch::nn::Linear module(torch::nn::LinearOptions(2, 1).bias(false));
  const auto before = all_bits(*module);
  const auto tensors = dict({{"weight", at::ones({1, 2})}, {"kernel", at::ones({1, 2})}});
  const auto error = error_of(
      [&] { load_state_dict(*module, tensors, LoadOptions().key_map({{"kernel", "weight"}})); });
  EXPECT_EQ(error.code(), Code::DuplicateKey);
  EXPECT_CONTAINS(error.what(), "'weight' and 'kernel' both become 'weight' in the module");
  EXPECT_EQ(all_bits(*module), before);
}

struct OneBuffer : torch::nn::Module {
  explicit OneBuffer(const at::Tensor& tensor) : value(register_buffer("value", tensor)) {}
  at::Tensor value;
};

TEST(Cast, IsDoneOnRequestOnly) {
  const auto source = at::randn({3, 5}, at::kDouble);
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn}) {
    OneBuffer module(at::zeros({3, 5}, at::kFloat).to(type));
    const auto tensors = dict({{"value", source}});
    const auto error = error_of([&] { load_state_dict(module, tensors); });
    EXPECT_EQ(error.code(), Code::DtypeMismatch);
    EXPECT_CONTAINS(error.remedy(), "LoadOptions().cast(true)");
    EXPECT_EQ(load_state_dict(module, tensors, LoadOptions().cast(true)).cast, Names{"value"});
    EXPECT_TRUE(identical(module.value, source.to(type))) << type;
  }
}

TEST(Cast, NeverLosesAKindOrARange) {
  struct Case {
    at::ScalarType from, to;
    bool may;
  };
  for (const auto& [from, to, may] : {Case{at::kFloat, at::kLong, false},
                                      {at::kLong, at::kFloat, false},
                                      {at::kLong, at::kInt, false},
                                      {at::kInt, at::kLong, true},
                                      {at::kByte, at::kShort, true},
                                      {at::kChar, at::kByte, false},
                                      {at::kByte, at::kChar, false},
                                      {at::kBool, at::kByte, true},
                                      {at::kByte, at::kBool, false},
                                      {at::kComplexFloat, at::kFloat, false},
                                      {at::kComplexFloat, at::kComplexDouble, true},
                                      {at::kFloat, at::kComplexFloat, false}}) {
    OneBuffer module(at::zeros({2}, to));
    const auto tensors = dict({{"value", at::ones({2}, from)}});
    const auto load = [&] { load_state_dict(module, tensors, LoadOptions().cast(true)); };
    if (may) {
      load();
      EXPECT_TRUE(at::equal(module.value, at::ones({2}, to)));
    } else {
      const auto error = error_of(load);
      EXPECT_EQ(error.code(), Code::DtypeMismatch) << from << to;
      EXPECT_EQ(error.remedy(), "");
    }
  }
}

// Declares traits of itself and of its child.
struct WithTraits : torch::nn::Module, StateDictTraits {
  WithTraits() {
    table = register_parameter("table", at::ones({4, 2}));
    scratch = register_buffer("scratch", at::zeros({3}));
    child = register_module("child", torch::nn::Linear(2, 2));
    child->register_buffer("mask", at::zeros({1}));
  }
  std::vector<TiedName> tied_names() const override {
    return {{"output.weight", "table"}, {"again.weight", "child.weight"}};
  }
  std::vector<std::string> non_persistent_names() const override {
    return {"scratch", "child.mask", "position_ids"};
  }
  at::Tensor table, scratch;
  torch::nn::Linear child{nullptr};
};

TEST(StateDictTraitsLoad, AreSeenByStateDict) {
  WithTraits module;
  EXPECT_EQ(names(state_dict(module)),
            (Names{"table", "child.weight", "child.bias", "output.weight", "again.weight"}));
  EXPECT_TRUE(state_dict(module)["output.weight"].is_same(module.table));
}

TEST(StateDictTraitsLoad, AnAliasIsEnoughAndMustAgree) {
  WithTraits module;
  auto tensors = dict({{"output.weight", at::full({4, 2}, 5.0f)},
                       {"child.weight", at::ones({2, 2})},
                       {"child.bias", at::ones({2})}});
  EXPECT_EQ(load_state_dict(module, tensors).missing, Names{});
  EXPECT_TRUE(at::equal(module.table, at::full({4, 2}, 5.0f)));

  tensors.insert("table", at::full({4, 2}, 6.0f));
  const auto error = error_of([&] { load_state_dict(module, tensors); });
  EXPECT_EQ(error.code(), Code::TieConflict);
  EXPECT_CONTAINS(error.what(), "'table' and 'output.weight' are one tensor");
  EXPECT_CONTAINS(error.what(), "key_map({{\"output.weight\", \"\"}}) keeps the first");
}

TEST(StateDictTraitsLoad, NonPersistentNamesAreIgnored) {
  WithTraits module;
  auto tensors = state_dict(WithTraits());
  for (const char* name : {"scratch", "child.mask", "position_ids"}) {
    tensors.insert(name, at::full({9}, 7.0f));
  }
  const auto report = load_state_dict(module, tensors);
  EXPECT_EQ(report.ignored, (Names{"scratch", "child.mask", "position_ids"}));
  EXPECT_EQ(report.unexpected, Names{});
  EXPECT_TRUE(at::equal(module.scratch, at::zeros({3})));
}

// PyTorch before 0.4.1 had no such counter, and torch.nn takes its state dicts as they are.
TEST(Missing, TheCounterOfABatchNormIsKeptIfTheFileHasNone) {
  torch::nn::BatchNorm1d module(2);
  module->num_batches_tracked.fill_(7);
  auto tensors = dict({{"weight", at::full({2}, 3.0f)},
                       {"bias", at::ones({2})},
                       {"running_mean", at::ones({2})},
                       {"running_var", at::ones({2})}});
  const auto report = load_state_dict(*module, tensors);
  EXPECT_EQ(report.missing, Names{"num_batches_tracked"});
  EXPECT_EQ(report.loaded, (Names{"weight", "bias", "running_mean", "running_var"}));
  EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 7);
  EXPECT_TRUE(at::equal(module->weight, at::full({2}, 3.0f)));

  const auto error = error_of([&] {
    load_state_dict(*module, dict({{"weight", at::ones({2})}, {"bias", at::ones({2})}}));
  });
  EXPECT_EQ(error.details().missing, (Names{"running_mean", "running_var", "num_batches_tracked"}));
}

TEST(Errors, AllKindsTogetherAndTheFirstIsTheCode) {
  WithTraits module;
  const auto before = all_bits(module);
  const auto tensors = dict({{"table", at::ones({4, 3})},
                             {"child.weight", at::ones({2, 2}, at::kDouble)},
                             {"child.bais", at::ones({2})}});
  const auto error = error_of([&] { load_state_dict(module, tensors); });
  EXPECT_EQ(error.code(), Code::MissingKeys);
  EXPECT_CONTAINS(error.what(), "missing (1):\n    'child.bias' (did you mean 'child.bais'?)");
  EXPECT_CONTAINS(error.what(), "unexpected (1):\n    'child.bais'");
  EXPECT_CONTAINS(error.what(), "'table' must have shape (4, 2). Got (4, 3)");
  EXPECT_CONTAINS(error.what(), "'child.weight' must have dtype float32. Got float64");
  EXPECT_EQ(all_bits(module), before);
}

}  // namespace
}  // namespace posenc::testing
