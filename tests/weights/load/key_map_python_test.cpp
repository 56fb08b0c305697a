// key_map against PyTorch: files that Python writes in every format, with the results of torch.cat
// and torch.transpose, and random maps compared with at::cat and at::transpose.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <random>
#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "support/python.h"
#include "support/seed.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

// Buffers for `like`; names with dots become nested modules.
std::shared_ptr<torch::nn::Module> module_like(const StateDict& like) {
  auto root = std::make_shared<torch::nn::Module>();
  for (const auto& item : like) {
    auto at = root;
    std::string rest = item.key();
    for (auto dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
      const std::string part = rest.substr(0, dot);
      const auto children = at->named_children();
      at = children.contains(part)
               ? children[part]
               : at->register_module(part, std::make_shared<torch::nn::Module>());
      rest = rest.substr(dot + 1);
    }
    at->register_buffer(rest, at::full_like(item.value(), -1.0));
  }
  return root;
}

void expect_loaded(const torch::nn::Module& module, const StateDict& expected) {
  for (const auto& item : state_dict(module)) {
    EXPECT_TRUE(identical(item.value(), expected[item.key()])) << item.key();
  }
}

// A GPT-2 (its Linear is Conv1D, whose weight is (in, out)) and a BERT (q, k and v apart), written
// in every format; `packed.pt` has them as torch.nn's layers name and shape their weights.
const char* const kScript = R"(
import torch
torch.manual_seed(SEED)
try:
    from transformers import BertConfig, BertModel, GPT2Config, GPT2Model
    gpt2 = GPT2Model(GPT2Config(vocab_size=11, n_positions=7, n_embd=12, n_layer=2, n_head=3))
    bert = BertModel(BertConfig(vocab_size=11, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                                intermediate_size=20, max_position_embeddings=7), add_pooling_layer=False)
except ImportError:
    class Conv1D(torch.nn.Module):
        def __init__(self, nf, nx):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(nx, nf))
            self.bias = torch.nn.Parameter(torch.randn(nf))
        def forward(self, x):
            return torch.addmm(self.bias, x, self.weight)
    def tree(**children):
        node = torch.nn.Module()
        for name, child in children.items():
            node.add_module(name, child)
        return node
    norm, linear = lambda: torch.nn.LayerNorm(12), torch.nn.Linear
    block = lambda: tree(ln_1=norm(), attn=tree(c_attn=Conv1D(36, 12), c_proj=Conv1D(12, 12)),
                         ln_2=norm(), mlp=tree(c_fc=Conv1D(48, 12), c_proj=Conv1D(12, 48)))
    gpt2 = tree(wte=torch.nn.Embedding(11, 12), wpe=torch.nn.Embedding(7, 12),
                h=torch.nn.ModuleList(block() for _ in range(2)), ln_f=norm())
    layer = lambda: tree(
        attention=tree(self=tree(query=linear(12, 12), key=linear(12, 12), value=linear(12, 12)),
                       output=tree(dense=linear(12, 12), LayerNorm=norm())),
        intermediate=tree(dense=linear(12, 20)), output=tree(dense=linear(20, 12), LayerNorm=norm()))
    bert = tree(encoder=tree(layer=torch.nn.ModuleList(layer() for _ in range(2))))

class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt2, self.bert = gpt2, bert
    def forward(self, x):
        return x
with torch.no_grad():
    for parameter in [*gpt2.parameters(), *bert.parameters()]:
        parameter.normal_()
root = Root()
state = {k: v for k, v in root.state_dict().items() if 'embeddings' not in k and 'position_ids' not in k}
packed = {}
for i in range(2):
    ours, theirs = f'gpt2.layers.{i}.', f'gpt2.h.{i}.'
    for a, b in [('norm1', 'ln_1'), ('norm2', 'ln_2')]:
        for kind in ['weight', 'bias']:
            packed[f'{ours}{a}.{kind}'] = state[f'{theirs}{b}.{kind}']
    for a, b in [('self_attn.in_proj_', 'attn.c_attn.'), ('self_attn.out_proj.', 'attn.c_proj.'),
                 ('linear1.', 'mlp.c_fc.'), ('linear2.', 'mlp.c_proj.')]:
        packed[f'{ours}{a}weight'] = state[f'{theirs}{b}weight'].T.contiguous()
        packed[f'{ours}{a}bias'] = state[f'{theirs}{b}bias']
    ours, theirs = f'bert.layers.{i}.', f'bert.encoder.layer.{i}.'
    for kind in ['weight', 'bias']:
        parts = [state[f'{theirs}attention.self.{part}.{kind}'] for part in ['query', 'key', 'value']]
        packed[f'{ours}self_attn.in_proj_{kind}'] = torch.cat(parts)
        for a, b in [('self_attn.out_proj', 'attention.output.dense'), ('norm1', 'attention.output.LayerNorm'),
                     ('linear1', 'intermediate.dense'), ('linear2', 'output.dense'), ('norm2', 'output.LayerNorm')]:
            packed[f'{ours}{a}.{kind}'] = state[f'{theirs}{b}.{kind}']
torch.save(packed, 'packed.pt')
torch.save(state, 'save.pt')
torch.save(state, 'legacy.pt', _use_new_zipfile_serialization=False)
class Holder(torch.nn.Module):
    def forward(self, x):
        return x
def holder(names):
    node = Holder()
    heads = dict.fromkeys(name.split('.')[0] for name in names if '.' in name)
    for head in heads:
        node.add_module(head, holder({n[len(head) + 1:]: t for n, t in names.items() if n.startswith(head + '.')}))
    for name, tensor in names.items():
        if '.' not in name:
            node.register_buffer(name, tensor)
    return node
plain = holder(state)
torch.jit.script(plain).save('script.pt')
torch.export.save(torch.export.export(plain, (torch.ones(2),)), 'export.pt2')
from safetensors.torch import save_file
save_file({k: v.contiguous() for k, v in state.items()}, 'x.safetensors')
)";

const KeyMap& published_names() {
  static const KeyMap map = {
      {"gpt2.h.*.ln_1.*", "gpt2.layers.*.norm1.*"},
      {"gpt2.h.*.ln_2.*", "gpt2.layers.*.norm2.*"},
      {KeySource::transposed("gpt2.h.*.attn.c_attn.weight"),
       "gpt2.layers.*.self_attn.in_proj_weight"},
      {"gpt2.h.*.attn.c_attn.bias", "gpt2.layers.*.self_attn.in_proj_bias"},
      {KeySource::transposed("gpt2.h.*.attn.c_proj.weight"),
       "gpt2.layers.*.self_attn.out_proj.weight"},
      {"gpt2.h.*.attn.c_proj.bias", "gpt2.layers.*.self_attn.out_proj.bias"},
      {KeySource::transposed("gpt2.h.*.mlp.c_fc.weight"), "gpt2.layers.*.linear1.weight"},
      {"gpt2.h.*.mlp.c_fc.bias", "gpt2.layers.*.linear1.bias"},
      {KeySource::transposed("gpt2.h.*.mlp.c_proj.weight"), "gpt2.layers.*.linear2.weight"},
      {"gpt2.h.*.mlp.c_proj.bias", "gpt2.layers.*.linear2.bias"},
      {"gpt2.*", ""},
      {{"bert.encoder.layer.*.attention.self.query.*", "bert.encoder.layer.*.attention.self.key.*",
        "bert.encoder.layer.*.attention.self.value.*"},
       "bert.layers.*.self_attn.in_proj_*"},
      {"bert.encoder.layer.*.attention.output.dense.*", "bert.layers.*.self_attn.out_proj.*"},
      {"bert.encoder.layer.*.attention.output.LayerNorm.*", "bert.layers.*.norm1.*"},
      {"bert.encoder.layer.*.intermediate.dense.*", "bert.layers.*.linear1.*"},
      {"bert.encoder.layer.*.output.dense.*", "bert.layers.*.linear2.*"},
      {"bert.encoder.layer.*.output.LayerNorm.*", "bert.layers.*.norm2.*"}};
  return map;
}

TEST(KeyMapPython, ModelsOfTransformersInEveryFormat) {
  const TempDir dir;
  std::string script = kScript;
  script.replace(script.find("SEED"), 4, std::to_string(seed(7)));
  ASSERT_TRUE(run_python(dir, script));
  const StateDict expected = load_tensors(dir / "packed.pt");
  ASSERT_EQ(expected.size(), 48U);
  for (const char* file : {"save.pt", "legacy.pt", "script.pt", "export.pt2", "x.safetensors"}) {
    for (const bool staged : {false, true}) {
      SCOPED_TRACE(file);
      const auto module = module_like(expected);
      const auto options = LoadOptions().key_map(published_names()).staged(staged);
      const auto report = load_weights(*module, dir / file, options);
      EXPECT_EQ(report.loaded.size(), expected.size());
      expect_loaded(*module, expected);
    }
  }
}

// A file's tensors, the map that packs them, and the expected results of PyTorch's own functions.
struct Case {
  StateDict tensors, expected;
  KeyMap map;
};

class RandomMaps {
 public:
  explicit RandomMaps(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

  Case next() {
    Case made;
    for (int64_t i = 0, count = 1 + below(4); i < count; ++i) add_target(made, std::to_string(i));
    return made;
  }

 private:
  at::Tensor values(const std::vector<int64_t>& sizes) {
    const at::ScalarType types[] = {at::kFloat, at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
    return at::randn(sizes).to(types[below(5)]);
  }

  // `part`, as a file has it that is loaded by the source.
  std::pair<at::Tensor, KeySource> in_file(const at::Tensor& part, const std::string& pattern) {
    const int64_t rank = part.dim();
    switch (below(4)) {
      case 0: {
        const int64_t a = below(rank), b = below(rank);
        return {part.transpose(a, b), KeySource::transposed(pattern, a, b)};
      }
      case 1: {
        const int64_t axis = below(rank + 1);
        return {part.unsqueeze(axis), KeySource::squeezed(pattern, axis)};
      }
      case 2:
        for (int64_t axis = 0; axis < rank; ++axis) {
          if (part.size(axis) == 1)
            return {part.squeeze(axis), KeySource::unsqueezed(pattern, axis)};
        }
        [[fallthrough]];
      default: return {part, KeySource(pattern)};
    }
  }

  void add_target(Case& made, const std::string& name) {
    std::vector<int64_t> sizes(static_cast<std::size_t>(1 + below(3)));
    for (auto& size : sizes) size = 1 + below(5);
    std::vector<KeySource> sources;
    std::vector<at::Tensor> parts;
    for (int64_t i = 0, count = 1 + below(4); i < count; ++i) {
      sizes[0] = below(5);
      const at::Tensor part = values(sizes);
      auto [stored, source] = in_file(part, "layer.*." + name + "_" + std::to_string(i));
      // Views, which torch.save keeps, and contiguous tensors.
      made.tensors.insert("layer.7." + name + "_" + std::to_string(i),
                          below(2) == 0 ? stored : stored.contiguous());
      sources.push_back(source);
      parts.push_back(part.to(at::kFloat));
    }
    made.map.emplace_back(sources, "w*." + name);
    made.expected.insert("w7." + name, at::cat(parts));
  }

  std::mt19937 random_;
};

TEST(KeyMapDifferential, RandomMapsAgainstCatAndTranspose) {
  RandomMaps random(seed(31));
  const TempDir dir;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Case made = random.next();
    const auto options = LoadOptions().key_map(made.map).cast(true).staged(random.below(2) == 0);
    const auto module = module_like(made.expected);
    switch (random.below(3)) {
      case 0: load_state_dict(*module, made.tensors, options); break;
      case 1:
        save_tensors(dir / "x.pt", made.tensors);
        load_weights(*module, dir / "x.pt", options);
        break;
      default:
        save_tensors(dir / "x.safetensors", made.tensors);
        load_weights(*module, dir / "x.safetensors", options);
    }
    expect_loaded(*module, made.expected);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace posenc::testing
