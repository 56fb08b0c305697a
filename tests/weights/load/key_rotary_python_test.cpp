// key_map's conversion between rotary pairings, against files that Python writes: a model in
// Hugging Face's layout, and the same model in Meta's, with scores that show that it is the same.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "posenc/positions/functional/rotary.h"
#include "posenc/weights/load.h"
#include "support/python.h"
#include "weights/support.h"

namespace posenc::testing::key_rotary_python_test {
namespace {

using rotary::Pairing;

// Hugging Face's layout rotates with rotate_half, Meta's with complex numbers. `to_meta` is the
// inverse of `permute` in transformers' convert_llama_weights_to_hf.py. The partial model rotates
// the first 8 of 12 channels.
const char* const kScript = R"(
import torch
from safetensors.torch import save_file
torch.manual_seed(3)
H, Hkv, Dh, E = 4, 2, 12, 20

def to_meta(w, heads, rotating):
    by_head = w.view(heads, Dh, *w.shape[1:])
    turned = by_head[:, :rotating].view(heads, 2, rotating // 2, *w.shape[1:]).transpose(1, 2)
    return torch.cat([turned.reshape(heads, rotating, *w.shape[1:]), by_head[:, rotating:]], 1).reshape(w.shape)

def angles(length, rotating):
    f = 1.0 / (10000.0 ** (torch.arange(0, rotating, 2).float() / rotating))
    return torch.outer(torch.arange(length).float(), f)

def hf(x, rotating):
    part, rest = x[..., :rotating], x[..., rotating:]
    a = torch.cat([angles(x.shape[-2], rotating)] * 2, -1)
    half = torch.cat([-part[..., rotating // 2:], part[..., :rotating // 2]], -1)
    return torch.cat([part * a.cos() + half * a.sin(), rest], -1)

def meta(x, rotating):
    part, rest = x[..., :rotating], x[..., rotating:]
    a = angles(x.shape[-2], rotating)
    turned = torch.view_as_complex(part.reshape(*part.shape[:-1], -1, 2)) * torch.polar(torch.ones_like(a), a)
    return torch.cat([torch.view_as_real(turned).flatten(-2), rest], -1)

ours, theirs = {}, {}
x = torch.randn(7, E)
for name, rotating in [('whole', Dh), ('partial', 8)]:
    q = {'weight': torch.randn(H * Dh, E), 'bias': torch.randn(H * Dh)}
    k = {'weight': torch.randn(Hkv * Dh, E), 'bias': torch.randn(Hkv * Dh)}
    v = {'weight': torch.randn(Hkv * Dh, E), 'bias': torch.randn(Hkv * Dh)}
    def scores(q, k, rotate):
        heads = lambda p, n: rotate((x @ p['weight'].T + p['bias']).view(7, n, Dh).transpose(0, 1), rotating)
        return heads(q, H) @ heads(k, Hkv).repeat_interleave(H // Hkv, 0).transpose(1, 2)
    meta_q = {kind: to_meta(w, H, rotating) for kind, w in q.items()}
    meta_k = {kind: to_meta(w, Hkv, rotating) for kind, w in k.items()}
    assert (scores(q, k, hf) - scores(meta_q, meta_k, meta)).abs().max() < 1e-3
    assert (scores(q, k, hf) - scores(q, k, meta)).abs().max() > 1
    for kind in ['weight', 'bias']:
        ours[f'{name}.q_proj.{kind}'], ours[f'{name}.k_proj.{kind}'] = q[kind], k[kind]
        ours[f'{name}.v_proj.{kind}'] = v[kind]
        theirs[f'{name}.wq.{kind}'], theirs[f'{name}.wk.{kind}'] = meta_q[kind], meta_k[kind]
        theirs[f'{name}.wv.{kind}'] = v[kind]
save_file(ours, 'hf.safetensors')
torch.save(theirs, 'meta.pth')
)";

const KeyMap& meta_to_hf() {
  static const KeyMap map = {
      {KeySource::adjacent_to_halves("whole.wq.*", 4), "whole.q_proj.*"},
      {KeySource::adjacent_to_halves("whole.wk.*", 2), "whole.k_proj.*"},
      {KeySource::adjacent_to_halves("partial.wq.*", 4, 8), "partial.q_proj.*"},
      {KeySource::adjacent_to_halves("partial.wk.*", 2, 8), "partial.k_proj.*"},
      {"*.wv.*", "*.v_proj.*"}};
  return map;
}

// Buffers for `like`, whose names have two dots.
class Flat : public torch::nn::Module {
 public:
  explicit Flat(const StateDict& like) {
    for (const auto& item : like) {
      const std::string& name = item.key();
      const auto first = name.find('.'), last = name.rfind('.');
      child(*child(*this, name.substr(0, first)), name.substr(first + 1, last - first - 1))
          ->register_buffer(name.substr(last + 1), at::zeros_like(item.value()));
    }
  }

 private:
  static std::shared_ptr<Module> child(Module& parent, const std::string& name) {
    const auto children = parent.named_children();
    return children.contains(name)
               ? children[name]
               : parent.register_module(name, std::make_shared<torch::nn::Module>());
  }
};

void expect_equal(const torch::nn::Module& module, const StateDict& expected) {
  const StateDict loaded = state_dict(module);
  ASSERT_EQ(loaded.size(), expected.size());
  for (const auto& item : loaded)
    EXPECT_TRUE(identical(item.value(), expected[item.key()])) << item.key();
}

class KeyRotaryPython : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(run_python(dir_, kScript));
    hf_ = load_tensors(dir_ / "hf.safetensors");
    meta_ = load_tensors(dir_ / "meta.pth");
  }
  TempDir dir_;
  StateDict hf_, meta_;
};

TEST_F(KeyRotaryPython, MetasFileBecomesHuggingFaces) {
  for (const bool staged : {false, true}) {
    Flat module(hf_);
    const auto report =
        load_weights(module, dir_ / "meta.pth", LoadOptions().key_map(meta_to_hf()).staged(staged));
    EXPECT_EQ(report.loaded.size(), hf_.size());
    expect_equal(module, hf_);
    Flat other(hf_);
    load_state_dict(other, meta_, LoadOptions().key_map(meta_to_hf()).staged(staged));
    expect_equal(other, hf_);
  }
}

TEST_F(KeyRotaryPython, AndBack) {
  const KeyMap map = {{KeySource::halves_to_adjacent("whole.q_proj.*", 4), "whole.wq.*"},
                      {KeySource::halves_to_adjacent("whole.k_proj.*", 2), "whole.wk.*"},
                      {KeySource::halves_to_adjacent("partial.q_proj.*", 4, 8), "partial.wq.*"},
                      {KeySource::halves_to_adjacent("partial.k_proj.*", 2, 8), "partial.wk.*"},
                      {"*.v_proj.*", "*.wv.*"}};
  Flat module(meta_);
  load_weights(module, dir_ / "hf.safetensors", LoadOptions().key_map(map));
  expect_equal(module, meta_);
}

TEST_F(KeyRotaryPython, PacksWithTheOthersAndCasts) {
  torch::nn::Module module;
  module.register_buffer("in_proj_weight", at::zeros({96, 20}, at::kDouble));
  module.register_buffer("in_proj_bias", at::zeros({96}, at::kDouble));
  const KeyMap map = {{{KeySource::adjacent_to_halves("partial.wq.*", 4, 8),
                        KeySource::adjacent_to_halves("partial.wk.*", 2, 8), "partial.wv.*"},
                       "in_proj_*"},
                      {"whole.*", ""}};
  load_weights(module, dir_ / "meta.pth", LoadOptions().key_map(map).cast(true));
  for (const std::string kind : {"weight", "bias"}) {
    const at::Tensor expected =
        at::cat({hf_["partial.q_proj." + kind], hf_["partial.k_proj." + kind],
                 hf_["partial.v_proj." + kind]});
    EXPECT_TRUE(identical(module.named_buffers()["in_proj_" + kind], expected.to(at::kDouble)));
  }
}

TEST_F(KeyRotaryPython, IsWhatTheFunctionReturns) {
  const auto converted = functional::convert_rotary_weight(meta_["partial.wk.weight"], 2,
                                                           Pairing::Adjacent, Pairing::Halves, 8);
  EXPECT_TRUE(identical(converted, hf_["partial.k_proj.weight"]));
}

TEST(KeyRotary, NeedsRowsOfWholeHeads) {
  const auto refused = [](const KeySource& source, const at::Tensor& tensor) {
    torch::nn::Module module;
    module.register_buffer("w", at::zeros({12, 2}));
    StateDict tensors;
    tensors.insert("a", tensor);
    const auto error =
        error_of([&] { load_state_dict(module, tensors, LoadOptions().key_map({{source, "w"}})); });
    EXPECT_EQ(error.code(), WeightsErrorCode::ShapeMismatch);
    EXPECT_TRUE(identical(module.named_buffers()["w"], at::zeros({12, 2})));
    return std::string(error.what());
  };
  EXPECT_CONTAINS(refused(KeySource::adjacent_to_halves("a", 5), at::ones({12, 2})),
                  "'a' must be (5 * Dh, in) or (5 * Dh) with an even Dh for its rows to be "
                  "reordered. Got shape (12, 2)");
  EXPECT_CONTAINS(refused(KeySource::adjacent_to_halves("a", 4), at::ones({12, 2})), "an even Dh");
  EXPECT_CONTAINS(refused(KeySource::halves_to_adjacent("a", 2, 8), at::ones({12, 2})),
                  "with a Dh of at least 8");
  EXPECT_CONTAINS(refused(KeySource::halves_to_adjacent("a", 2), at::ones({12, 2, 1})),
                  "Got shape (12, 2, 1)");
  EXPECT_CONTAINS(refused(KeySource::adjacent_to_halves("a", 2), at::ones({8, 2})),
                  "'w' must have shape (12, 2). Got (8, 2)");
}

TEST(KeyRotary, RefusesHeadsThatCannotBe) {
  const auto refused = [](const KeySource& source) {
    torch::nn::Module module;
    try {
      load_state_dict(module, StateDict(), LoadOptions().key_map({{source, "w"}}));
    } catch (const c10::ValueError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_CONTAINS(refused(KeySource::adjacent_to_halves("a", 0)),
                  "heads in key_map must be positive. Got 0 for 'a'");
  EXPECT_CONTAINS(refused(KeySource::adjacent_to_halves("a", 2, 3)),
                  "rotary_dim in key_map must be even and not negative. Got 3 for 'a'");
  EXPECT_CONTAINS(refused(KeySource::halves_to_adjacent("a", 2, -2)), "Got -2 for 'a'");
}

}  // namespace
}  // namespace posenc::testing::key_rotary_python_test
