// key_map's packs and changes: what they load, what they report, and what they refuse.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"
#include "weights/support.h"

namespace posenc::testing::key_pack_test {
namespace {

using Names = std::vector<std::string>;
using Code = WeightsErrorCode;

StateDict dict(const std::vector<std::pair<std::string, at::Tensor>>& items) {
  StateDict tensors;
  for (const auto& [name, tensor] : items) tensors.insert(name, tensor);
  return tensors;
}

// Buffers of these names and sizes, filled with -1.
struct Buffers : torch::nn::Module {
  explicit Buffers(const std::vector<std::pair<std::string, std::vector<int64_t>>>& sizes,
                   at::ScalarType type = at::kFloat) {
    for (const auto& [name, size] : sizes) {
      register_buffer(name, at::full(size, -1.0, at::TensorOptions(type)));
    }
  }
  at::Tensor operator[](const std::string& name) { return named_buffers()[name]; }
};

// The three parts of an attention layer's projection, of 2, 3 and 4 rows.
StateDict three_parts() {
  StateDict tensors;
  int64_t rows = 2;
  for (const char* part : {"q", "k", "v"}) {
    tensors.insert(std::string("attn.") + part + ".weight", at::randn({rows, 5}));
    tensors.insert(std::string("attn.") + part + ".bias", at::randn({rows++}));
  }
  return tensors;
}
const KeyMap kPack = {{{"attn.q.*", "attn.k.*", "attn.v.*"}, "in_proj_*"}};
Buffers projection() { return Buffers({{"in_proj_weight", {9, 5}}, {"in_proj_bias", {9}}}); }
at::Tensor packed(const StateDict& tensors, const std::string& name) {
  return at::cat({tensors["attn.q." + name], tensors["attn.k." + name], tensors["attn.v." + name]});
}

WeightsError refused(torch::nn::Module& module, const StateDict& tensors, LoadOptions options) {
  const auto before = all_bits(module);
  const auto error = error_of([&] { load_state_dict(module, tensors, options); });
  EXPECT_EQ(all_bits(module), before);
  return error;
}

TEST(KeyPack, RowsFollowOneAnother) {
  const auto tensors = three_parts();
  const TempDir dir;
  save_tensors(dir / "x.pt", tensors);
  save_tensors(dir / "x.safetensors", tensors);
  for (const bool staged : {false, true}) {
    const auto options = LoadOptions().key_map(kPack).staged(staged);
    for (const char* file : {"", "x.pt", "x.safetensors"}) {
      auto module = projection();
      const auto report = *file == '\0' ? load_state_dict(module, tensors, options)
                                        : load_weights(module, dir / file, options);
      EXPECT_EQ(report.loaded, (Names{"in_proj_weight", "in_proj_bias"}));
      EXPECT_EQ(report.unexpected, Names{});
      for (const char* name : {"weight", "bias"}) {
        EXPECT_TRUE(identical(module[std::string("in_proj_") + name], packed(tensors, name)));
      }
    }
  }
}

TEST(KeyPack, OrderIsTheRulesNotTheFiles) {
  auto module = Buffers({{"w", {3, 2}}});
  const auto a = at::randn({1, 2}), b = at::randn({2, 2});
  load_state_dict(module, dict({{"b", b}, {"a", a}}), LoadOptions().key_map({{{"a", "b"}, "w"}}));
  EXPECT_TRUE(identical(module["w"], at::cat({a, b})));
}

TEST(KeyPack, StacksUnsqueezedParts) {
  auto module = Buffers({{"w", {2, 3}}});
  const auto a = at::randn({3}), b = at::randn({3});
  const KeyMap map = {{{KeySource::unsqueezed("a", 0), KeySource::unsqueezed("b", 0)}, "w"}};
  load_state_dict(module, dict({{"a", a}, {"b", b}}), LoadOptions().key_map(map));
  EXPECT_TRUE(identical(module["w"], at::stack({a, b})));
}

TEST(KeyPack, PartsOfTheModulesOwnMemoryAreReadFirst) {
  auto module = Buffers({{"w", {4, 2}}});
  module["w"].copy_(at::arange(8).view({4, 2}));
  const auto old = module["w"].clone();
  const auto tensors =
      dict({{"low", module["w"].narrow(0, 2, 2)}, {"high", module["w"].narrow(0, 0, 2)}});
  load_state_dict(module, tensors, LoadOptions().key_map({{{"low", "high"}, "w"}}));
  EXPECT_TRUE(identical(module["w"], at::cat({old.narrow(0, 2, 2), old.narrow(0, 0, 2)})));
}

TEST(KeyPack, AMissingPartIsNamedWhateverMayBeMissing) {
  auto tensors = three_parts();
  tensors.erase("attn.k.bias");
  for (const bool allow : {false, true}) {
    auto module = projection();
    const auto error = refused(module, tensors, LoadOptions().key_map(kPack).allow_missing(allow));
    EXPECT_EQ(error.code(), Code::MissingKeys);
    EXPECT_CONTAINS(error.what(),
                    "'attn.k.bias' is missing, and 'in_proj_bias' is packed from 'attn.q.bias', "
                    "'attn.k.bias' and 'attn.v.bias'");
    EXPECT_LACKS(error.what(), "weight");
  }
}

TEST(KeyPack, AMissingPackIsOneMissingTensor) {
  const auto tensors = dict({{"net.a.b.bias", at::ones({9})}});
  const KeyMap map = {{{"*.q.weight", "*.k.weight"}, "*.in_proj_weight"},
                      {"*.b.bias", "*.in_proj_bias"}};
  torch::nn::Module module;
  auto child = module.register_module("a", std::make_shared<torch::nn::Module>());
  child->register_buffer("in_proj_weight", at::zeros({4, 2}));
  child->register_buffer("in_proj_bias", at::zeros({9}));
  const auto options = LoadOptions().prefix("net.").key_map(map);
  const auto error = refused(module, tensors, options);
  EXPECT_EQ(error.code(), Code::MissingKeys);
  EXPECT_CONTAINS(error.what(),
                  "missing (1):\n    'a.in_proj_weight' (from 'net.a.q.weight' and "
                  "'net.a.k.weight')");
  const auto report = load_state_dict(module, tensors, LoadOptions(options).allow_missing(true));
  EXPECT_EQ(report.missing, Names{"a.in_proj_weight"});
}

TEST(KeyPack, PatternsThatNoNameTakesAreReported) {
  auto module = Buffers({{"w", {3}}, {"v", {1}}});
  const auto tensors =
      dict({{"p.a", at::ones({1})}, {"p.b", at::ones({2})}, {"p.v", at::ones({1})}, {"c", {}}});
  const KeyMap map = {{{"a", "b"}, "w"}, {"old.*", "*"}, {"v", "v"}, {"v*", "x"}, {"c", "z"}};
  LoadReport given;
  const auto options = LoadOptions().prefix("p.").key_map(map).report(&given);
  const auto report = load_state_dict(module, tensors, options);
  EXPECT_EQ(report.unused_patterns, (Names{"old.*", "v*", "c"}));
  EXPECT_EQ(given.unused_patterns, report.unused_patterns);
  const auto all = load_state_dict(module, dict({{"w", at::ones({3})}, {"v", at::ones({1})}}));
  EXPECT_TRUE(all.unused_patterns.empty());
}

TEST(KeyPack, PartsOfATensorThatIsNotWantedAreUnexpectedOrIgnored) {
  auto module = Buffers({{"w", {1}}});
  const auto tensors = dict({{"w", at::ones({1})}, {"a", at::ones({2})}, {"c", at::ones({2})}});
  const KeyMap map = {{{"a", "b"}, "other"}};
  const auto error = refused(module, tensors, LoadOptions().key_map(map));
  EXPECT_EQ(error.code(), Code::UnexpectedKeys);
  EXPECT_CONTAINS(error.what(), "unexpected (2):\n    'a'\n    'c'");
  const auto report =
      load_state_dict(module, tensors, LoadOptions().key_map({{{"a", "c", "b"}, ""}}));
  EXPECT_EQ(report.ignored, (Names{"a", "c"}));  // a pack that is dropped need not be whole
}

TEST(KeyPack, ShapesAgreeExceptInRows) {
  auto tensors = three_parts();
  tensors["attn.k.weight"] = at::ones({3, 4});
  auto module = projection();
  auto error = refused(module, tensors, LoadOptions().key_map(kPack));
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(error.what(),
                  "'attn.k.weight' must have shape (3, 5) to become rows of "
                  "'in_proj_weight'. Got (3, 4)");
  EXPECT_LACKS(error.what(), "attn.q.weight");

  tensors["attn.k.weight"] = at::ones({7, 5});
  error = refused(module, tensors, LoadOptions().key_map(kPack));
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(error.what(),
                  "'in_proj_weight' must have shape (9, 5). Got (13, 5) from "
                  "'attn.q.weight', 'attn.k.weight' and 'attn.v.weight'");
}

TEST(KeyPack, ScalarsHaveNoRows) {
  auto module = Buffers({{"w", {2}}, {"scalar", {}}});
  const KeyMap map = {{{"a", "b"}, "w"}, {{"c", "d"}, "scalar"}};
  const auto tensors =
      dict({{"a", at::ones({1})}, {"b", at::ones({})}, {"c", at::ones({1})}, {"d", at::ones({0})}});
  const auto error = refused(module, tensors, LoadOptions().key_map(map));
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(error.what(), "'b' must have rows to become rows of 'w', which has shape (2)");
  EXPECT_CONTAINS(error.what(),
                  "'c' must have rows to become rows of 'scalar', which has shape ()");
}

TEST(KeyPack, DtypesAreThoseOfTheModuleOrCast) {
  auto tensors = three_parts();
  const auto half = tensors["attn.k.weight"].to(at::kHalf);
  const auto wide = tensors["attn.v.weight"].to(at::kDouble);
  tensors["attn.k.weight"] = half;
  tensors["attn.v.weight"] = wide;
  auto module = projection();
  const auto error = refused(module, tensors, LoadOptions().key_map(kPack));
  EXPECT_EQ(error.code(), Code::DtypeMismatch);
  EXPECT_CONTAINS(error.what(), "'attn.k.weight' must have dtype float32. Got float16");
  EXPECT_CONTAINS(error.what(), "'attn.v.weight' must have dtype float32. Got float64");
  EXPECT_CONTAINS(error.remedy(), "LoadOptions().cast(true)");

  for (const bool staged : {false, true}) {
    auto other = projection();
    const auto report =
        load_state_dict(other, tensors, LoadOptions().key_map(kPack).cast(true).staged(staged));
    EXPECT_EQ(report.cast, Names{"in_proj_weight"});
    EXPECT_TRUE(
        identical(other["in_proj_weight"],
                  at::cat({tensors["attn.q.weight"], half.to(at::kFloat), wide.to(at::kFloat)})));
  }
  tensors["attn.k.weight"] = at::ones({3, 5}, at::kLong);
  EXPECT_CONTAINS(refused(module, tensors, LoadOptions().key_map(kPack).cast(true)).what(),
                  "'attn.k.weight' must have dtype float32. Got int64");
}

TEST(KeyPack, APartThatIsNoTensor) {
  auto tensors = three_parts();
  tensors["attn.k.bias"] = at::Tensor();
  auto module = projection();
  const auto error = refused(module, tensors, LoadOptions().key_map(kPack));
  EXPECT_EQ(error.code(), Code::Unsupported);
  EXPECT_CONTAINS(error.what(), "'attn.k.bias' must be a defined tensor");
}

TEST(KeyPack, ATensorThatIsThereTwice) {
  auto tensors = three_parts();
  tensors.insert("in_proj_bias", at::ones({9}));
  auto module = projection();
  const auto error = refused(module, tensors, LoadOptions().key_map(kPack));
  EXPECT_EQ(error.code(), Code::DuplicateKey);
  EXPECT_CONTAINS(error.what(),
                  "'attn.q.bias', 'attn.k.bias' and 'attn.v.bias' and "
                  "'in_proj_bias' both become 'in_proj_bias' in the module");
}

TEST(KeyPack, AFileThatShrinksNamesThePart) {
  const TempDir dir;
  const auto tensors = dict({{"a", at::ones({9000, 10})}, {"b", at::ones({9000, 10})}});
  save_tensors(dir / "x.safetensors", tensors);
  auto module = Buffers({{"w", {18000, 10}}});
  const io::FileSource source(dir / "x.safetensors");
  const io::LoadPlan plan(module, source, LoadOptions().key_map({{{"a", "b"}, "w"}}));
  ASSERT_EQ(truncate((dir / "x.safetensors").c_str(), 500000), 0);
  const auto error = error_of([&] { plan.apply(); });
  EXPECT_EQ(error.code(), Code::Truncated);
  EXPECT_EQ(error.tensor(), "b");
  EXPECT_CONTAINS(error.what(), "maybe a part of 'w'");
}

// Two names of one tensor.
struct Tied : torch::nn::Module, StateDictTraits {
  Tied() { weight = register_parameter("weight", at::zeros({4, 3})); }
  std::vector<TiedName> tied_names() const override { return {{"output", "weight"}}; }
  at::Tensor weight;
};

TEST(KeyPack, TiedNamesMustAgree) {
  const auto whole = at::randn({4, 3});
  auto tensors = dict({{"weight", whole},
                       {"a", whole.narrow(0, 0, 1).t().contiguous()},
                       {"b", whole.narrow(0, 1, 3)}});
  const auto options = LoadOptions().key_map({{{KeySource::transposed("a"), "b"}, "output"}});
  Tied module;
  EXPECT_EQ(load_state_dict(module, tensors, options).loaded, (Names{"weight", "output"}));
  EXPECT_TRUE(identical(module.weight, whole));

  tensors["b"] = at::randn({3, 3});
  const auto error = refused(module, tensors, options);
  EXPECT_EQ(error.code(), Code::TieConflict);
  EXPECT_CONTAINS(error.what(), "'weight' and 'a' and 'b' are one tensor in the module");
  EXPECT_CONTAINS(error.remedy(), "key_map({{\"a\", \"\"}, {\"b\", \"\"}}) keeps the first");

  tensors.erase("weight");
  load_state_dict(module, tensors, options);
  EXPECT_TRUE(identical(module.weight, at::cat({tensors["a"].t(), tensors["b"]})));
}

TEST(KeyChange, TransposesSqueezesAndUnsqueezes) {
  const auto a = at::randn({3, 4}), b = at::randn({5, 1, 2}), c = at::randn({1, 6});
  const auto d = at::randn({7, 2});
  const auto tensors = dict({{"a", a}, {"b", b}, {"c", c}, {"d", d}});
  const KeyMap map = {{KeySource::transposed("a"), "a"},
                      {KeySource::transposed("b", 0, 1), "b"},
                      {KeySource::squeezed("c", 0), "c"},
                      {KeySource::unsqueezed("d", 1), "d"}};
  const TempDir dir;
  save_tensors(dir / "x", tensors);
  for (const bool staged : {false, true}) {
    auto module = Buffers({{"a", {4, 3}}, {"b", {1, 5, 2}}, {"c", {6}}, {"d", {7, 1, 2}}});
    load_weights(module, dir / "x", LoadOptions().key_map(map).staged(staged));
    EXPECT_TRUE(identical(module["a"], a.t()));
    EXPECT_TRUE(identical(module["b"], b.transpose(0, 1)));
    EXPECT_TRUE(identical(module["c"], c[0]));
    EXPECT_TRUE(identical(module["d"], d.unsqueeze(1)));
  }
}

TEST(KeyChange, SwapsTheHalvesOfTheRows) {
  const auto a = at::randn({6, 4}), b = at::randn({2}), c = at::randn({3, 4});
  const auto tensors = dict({{"a", a}, {"b", b}, {"c", c}});
  const KeyMap map = {{KeySource::swapped_halves("b"), "b"},
                      {{KeySource::swapped_halves("a"), "c"}, "w"}};
  const TempDir dir;
  save_tensors(dir / "x", tensors);
  for (const bool staged : {false, true}) {
    auto module = Buffers({{"b", {2}}, {"w", {9, 4}}});
    load_weights(module, dir / "x", LoadOptions().key_map(map).staged(staged));
    EXPECT_TRUE(identical(module["b"], at::stack({b[1], b[0]})));
    EXPECT_TRUE(identical(module["w"], at::cat({a.narrow(0, 3, 3), a.narrow(0, 0, 3), c})));
  }
  auto odd = Buffers({{"a", {3}}});
  const auto error = refused(odd, dict({{"a", at::ones({3})}}),
                             LoadOptions().key_map({{KeySource::swapped_halves("a"), "a"}}));
  EXPECT_CONTAINS(error.what(),
                  "'a' must have an even number of rows for their halves to be swapped. Got shape "
                  "(3)");
}

TEST(KeyChange, NeedsTheAxes) {
  auto module = Buffers({{"a", {3}}, {"b", {2}}, {"c", {2}}});
  const KeyMap map = {{KeySource::transposed("a"), "a"},
                      {KeySource::squeezed("b", 0), "b"},
                      {KeySource::unsqueezed("c", 2), "c"}};
  const auto error =
      refused(module, dict({{"a", at::ones({3})}, {"b", at::ones({2, 2})}, {"c", at::ones({2})}}),
              LoadOptions().key_map(map));
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(error.what(), "'a' must have axes 0 and 1 to be transposed. Got shape (3)");
  EXPECT_CONTAINS(error.what(), "'b' must have length 1 along axis 0. Got shape (2, 2)");
  EXPECT_CONTAINS(error.what(), "'c' must have at least 2 axes to get one at 2. Got shape (2)");
}

TEST(KeyChange, ShapesAreThoseAfterIt) {
  auto module = Buffers({{"a", {4, 3}}, {"b", {4, 3}}});
  const KeyMap map = {{KeySource::transposed("a"), "a"}, {{KeySource::transposed("c"), "d"}, "b"}};
  const auto error = refused(
      module, dict({{"a", at::ones({4, 3})}, {"c", at::ones({2, 4})}, {"d", at::ones({2, 3})}}),
      LoadOptions().key_map(map));
  EXPECT_CONTAINS(error.what(), "'a' must have shape (4, 3). Got (3, 4)");
  EXPECT_CONTAINS(error.what(),
                  "'c', transposed, must have shape (4, 3) to become rows of 'b'. Got (4, 2)");
}

TEST(KeyMapRules, ThatCannotBeAppliedAreRefused) {
  auto module = Buffers({});
  const auto expect_refused = [&](const KeyMap& map, const std::string& text) {
    try {
      load_state_dict(module, StateDict(), LoadOptions().key_map(map));
      ADD_FAILURE() << text;
    } catch (const c10::ValueError& error) {
      EXPECT_CONTAINS(error.what(), text);
    }
  };
  expect_refused({{{"a.*", "b"}, "w"}}, "same number of asterisks. Got 'a.*' and 'b'");
  expect_refused({{{"a", "b", "a"}, "w"}}, "must differ. Got 'a' twice");
  expect_refused({{{"a", "b"}, "w.*"}}, "no more asterisks than its pattern 'a'. Got 'w.*'");
  expect_refused({{std::vector<KeySource>{}, "w"}}, "must have a pattern for 'w'");
  expect_refused({{KeySource::squeezed("a", -1), "w"}}, "must not be negative. Got -1 for 'a'");
  expect_refused({{KeySource::transposed("a", 0, -2), "w"}}, "negative. Got -2 for 'a'");
}

}  // namespace
}  // namespace posenc::testing::key_pack_test
