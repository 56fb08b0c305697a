// load_weights() in every format, against files that Python has just written: modules of random
// sizes, nested, tied, with half types, sharded; and all mismatches, reported together.
#include "posenc/weights/load.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <set>
#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/weights/manifest.h"
#include "support/compare.h"
#include "support/python.h"
#include "weights/files.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Names = std::vector<std::string>;
using Code = WeightsErrorCode;

// The counterpart of Python's Encoder below; `output.weight` is tied to the embedding's weight.
struct Encoder : torch::nn::Module, StateDictTraits {
  // Takes its sizes from the tensors `pe`, `mlp.0.weight` and `embedding.weight` of a file.
  explicit Encoder(const StateDict& like)
      : Encoder(like["embedding.weight"].size(0), like["pe"].size(2), like["pe"].size(1),
                like["mlp.0.weight"].size(0), like["pe"].scalar_type()) {}
  Encoder(int64_t tokens, int64_t dim, int64_t rows, int64_t hidden, at::ScalarType type) {
    pe = register_buffer("pe", at::zeros({1, rows, dim}));
    register_buffer("scratch", at::zeros({2}));
    embedding = register_module("embedding", torch::nn::Embedding(tokens, dim));
    mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
    first = mlp->register_module("0", torch::nn::Linear(dim, hidden));
    second = mlp->register_module("2", torch::nn::Linear(hidden, dim));
    to(type);
  }
  std::vector<TiedName> tied_names() const override {
    return {{"output.weight", "embedding.weight"}};
  }
  std::vector<std::string> non_persistent_names() const override { return {"scratch"}; }

  at::Tensor forward(const at::Tensor& ids) {
    const auto x = embedding->forward(ids) + pe.slice(1, 0, ids.size(1));
    const auto hidden = second->forward(at::relu(first->forward(x)));
    return at::linear(hidden, embedding->weight);
  }

  at::Tensor pe;
  torch::nn::Embedding embedding{nullptr};
  std::shared_ptr<torch::nn::Module> mlp;
  torch::nn::Linear first{nullptr}, second{nullptr};
};

constexpr const char* kPython = R"(
import json, random, torch
from torch import nn
random.seed(1), torch.manual_seed(1)

class Encoder(nn.Module):
    def __init__(self, tokens, dim, rows, hidden):
        super().__init__()
        self.register_buffer("pe", torch.randn(1, rows, dim))
        self.register_buffer("scratch", torch.ones(2), persistent=False)
        self.embedding = nn.Embedding(tokens, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))
        self.output = nn.Linear(dim, tokens, bias=False)
        self.output.weight = self.embedding.weight
    def forward(self, ids):
        return self.output(self.mlp(self.embedding(ids) + self.pe[:, :ids.shape[1]]))

for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    tokens, dim, rows, hidden = (random.randint(2, 90) for _ in range(4))
    encoder = Encoder(tokens, dim, rows, hidden).to(dtype).eval()
    ids = torch.randint(tokens, (3, random.randint(1, rows)))
    name = str(dtype)[6:]
    state = encoder.state_dict()
    with torch.no_grad():
        torch.save({"ids": ids, "out": encoder(ids)}, name + ".io.pt")
        torch.jit.save(torch.jit.script(encoder), name + ".script.pt")
        torch.jit.save(torch.jit.trace(encoder, ids), name + ".trace.pt")
        torch.export.save(torch.export.export(encoder, (ids,)), name + ".pt2")
    torch.save(state, name + ".pt")
    torch.save(state, name + ".protocol4.pt", pickle_protocol=4)
    torch.save(state, name + ".legacy.pt", _use_new_zipfile_serialization=False)
    optimizer = torch.optim.Adam(encoder.parameters())
    torch.save({"epoch": 3, "args": {"lr": 0.1}, "net": {"encoder": state, "head": {"w": torch.ones(2)}},
                "optimizer": optimizer.state_dict()}, name + ".nested.pt")
    torch.save({key: value.t() if value.dim() == 2 else value for key, value in
                ((key, value.t().contiguous() if value.dim() == 2 else value) for key, value in state.items())},
               name + ".strided.pt")
)";

constexpr const char* kPythonSafetensors = R"(
from safetensors.torch import save_file, save_model
import os
for dtype in ("float32", "float64", "float16", "bfloat16"):
    state = torch.load(dtype + ".pt")
    save_file({key: value.clone() for key, value in state.items()}, dtype + ".safetensors")
    del state["output.weight"]
    keys = sorted(state)
    shards = {f"{dtype}-{i}.safetensors": keys[i::3] for i in range(3)}
    for shard, names in shards.items():
        save_file({name: state[name] for name in names}, shard)
    with open(dtype + ".safetensors.index.json", "w") as index:
        json.dump({"metadata": {"total_size": sum(value.nbytes for value in state.values())},
                   "weight_map": {name: shard for shard, names in shards.items() for name in names}}, index)
)";

struct Format {
  const char* ending;
  const char* prefix;
  WeightsFormat format;
};

constexpr Format kFormats[] = {
    {".pt", "", WeightsFormat::TorchSave},
    {".protocol4.pt", "", WeightsFormat::TorchSave},
    {".strided.pt", "", WeightsFormat::TorchSave},
    {".nested.pt", "net.encoder.", WeightsFormat::TorchSave},
    {".legacy.pt", "", WeightsFormat::TorchSaveLegacy},
    {".script.pt", "", WeightsFormat::TorchScript},
    {".trace.pt", "", WeightsFormat::TorchScript},
    {".pt2", "", WeightsFormat::Pt2},
    {".safetensors", "", WeightsFormat::Safetensors},
    {".safetensors.index.json", "", WeightsFormat::SafetensorsIndex},
};
constexpr const char* kTypes[] = {"float32", "float64", "float16", "bfloat16"};

// Python writes the files once for all tests.
class Load : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    const bool whole = python_has("torch, safetensors.torch");
    ASSERT_TRUE(run_python(*dir_, std::string(kPython) + (whole ? kPythonSafetensors : "")));
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string file(const std::string& name) { return *dir_ / name; }
  static bool exists(const std::string& name) { return std::filesystem::exists(file(name)); }

  // Returns the error of load_weights(), which must leave the module unchanged.
  static WeightsError refused(torch::nn::Module& module, const std::string& path,
                              const LoadOptions& options = {}) {
    const auto before = all_bits(module);
    const auto error = error_of([&] { load_weights(module, path, options); });
    EXPECT_EQ(before, all_bits(module));
    EXPECT_EQ(error.file(), path);
    EXPECT_EQ(error.function(), "load_weights");
    return error;
  }

  static inline TempDir* dir_ = nullptr;
};

TEST_F(Load, EveryFormatAndTypeGivesPythonsOutput) {
  for (const std::string type : kTypes) {
    const auto like = load_tensors(file(type + ".pt"));
    const auto io = load_tensors(file(type + ".io.pt"));
    for (const auto& [ending, prefix, format] : kFormats) {
      if (!exists(type + ending)) continue;  // without safetensors in Python
      SCOPED_TRACE(type + ending);
      EXPECT_EQ(read_manifest(file(type + ending)).format, format);
      Encoder module(like);
      const auto report = load_weights(module, file(type + ending), LoadOptions().prefix(prefix));
      EXPECT_EQ(report.missing, Names{});
      EXPECT_EQ(report.unexpected, Names{});
      const bool script = format == WeightsFormat::TorchScript;
      EXPECT_EQ(report.ignored, script ? Names{"scratch"} : Names{});
      const at::NoGradGuard no_grad;
      EXPECT_TRUE(within(Op::Linear, module.forward(io["ids"]), io["out"]));
      for (const auto& item : state_dict(module)) {
        EXPECT_TRUE(identical(item.value(), like[item.key()])) << item.key();
      }
    }
  }
}

TEST_F(Load, TensorsKeepTheirTies) {
  for (const char* name : {"float32.pt", "float32.legacy.pt", "float32.script.pt", "float32.pt2"}) {
    const auto tensors = load_tensors(file(name));
    EXPECT_TRUE(tensors["embedding.weight"].is_alias_of(tensors["output.weight"])) << name;
    EXPECT_FALSE(tensors["embedding.weight"].is_alias_of(tensors["pe"])) << name;
  }
}

TEST_F(Load, AScriptHasItsClassName) {
  EXPECT_EQ(read_manifest(file("float32.script.pt")).class_name, "Encoder");
  EXPECT_EQ(read_manifest(file("float32.trace.pt")).class_name, "Encoder");
}

// Without traits, the module does not know `scratch`, which a script contains.
TEST_F(Load, AnUnknownBufferOfAScriptIsUnexpected) {
  struct Plain : torch::nn::Module {
    explicit Plain(const StateDict& like) {
      std::set<std::string> seen;
      for (const auto& item : like) {
        Module* at = this;
        std::string rest = item.key();
        for (auto dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
          const auto part = rest.substr(0, dot);
          const auto children = at->named_children();
          const auto* child = children.find(part);
          at = child ? child->get()
                     : at->register_module(part, std::make_shared<torch::nn::Module>()).get();
          rest = rest.substr(dot + 1);
        }
        at->register_buffer(rest, at::zeros_like(item.value()));
      }
    }
  } module(load_tensors(file("float32.pt")));
  const auto error = refused(module, file("float32.script.pt"));
  EXPECT_EQ(error.code(), Code::UnexpectedKeys);
  EXPECT_CONTAINS(error.what(), "unexpected (1):\n    'scratch'");
  const auto report =
      load_weights(module, file("float32.script.pt"), LoadOptions().allow_unexpected(true));
  EXPECT_EQ(report.unexpected, Names{"scratch"});
}

// All mismatches at once, in each format.
TEST_F(Load, ReportsAllThatDoesNotFitAndChangesNothing) {
  const auto like = load_tensors(file("float32.pt"));
  const auto tokens = like["embedding.weight"].size(0), dim = like["pe"].size(2);
  Encoder module(tokens + 1, dim, like["pe"].size(1), like["mlp.0.weight"].size(0), at::kFloat);
  module.mlp->register_buffer("extra", at::zeros({3}));
  module.pe.set_data(module.pe.to(at::kHalf));
  for (const auto& [ending, prefix, format] : kFormats) {
    if (!exists(std::string("float32") + ending)) continue;
    SCOPED_TRACE(ending);
    const auto path = file(std::string("float32") + ending);
    const auto options = LoadOptions().prefix(prefix).key_map({{"mlp.2.*", "mlp.3.*"}});
    const auto error = refused(module, path, options);
    EXPECT_EQ(error.code(), Code::MissingKeys);
    EXPECT_CONTAINS(error.what(), "missing (3):\n    'mlp.extra'");
    EXPECT_CONTAINS(error.what(), "unexpected (2):\n    '" + std::string(prefix) + "mlp.2.");
    EXPECT_CONTAINS(error.what(), "'pe' must have dtype float16. Got float32");
    EXPECT_CONTAINS(error.what(), "'embedding.weight' must have shape (" +
                                      std::to_string(tokens + 1) + ", " + std::to_string(dim) +
                                      "). Got (" + std::to_string(tokens) + ", ");
  }
}

TEST_F(Load, SaysWhichPrefixIsMissing) {
  Encoder module(load_tensors(file("float32.pt")));
  const auto error = refused(module, file("float32.nested.pt"));
  EXPECT_EQ(error.code(), Code::MissingKeys);
  EXPECT_CONTAINS(error.remedy(), "LoadOptions().prefix(\"net.encoder.\")");
  const auto none = refused(module, file("float32.pt"), LoadOptions().prefix("model."));
  EXPECT_CONTAINS(none.what(), "no name begins with 'model.'");
}

TEST_F(Load, RefusesATruncatedFileAtAnyLength) {
  Encoder module(load_tensors(file("float32.pt")));
  for (const auto& [ending, prefix, format] : kFormats) {
    if (!exists(std::string("float32") + ending)) continue;
    const auto whole = read_bytes(file(std::string("float32") + ending));
    for (std::size_t length = 0; length < whole.size(); length += whole.size() / 20 + 1) {
      write_bytes(file("cut"), whole.substr(0, length));
      SCOPED_TRACE(std::string(ending).append(" ").append(std::to_string(length)));
      refused(module, file("cut"), LoadOptions().prefix(prefix));
    }
  }
}

TEST_F(Load, RejectsOtherThanRegularFiles) {
  Encoder module(load_tensors(file("float32.pt")));
  EXPECT_EQ(refused(module, file("none")).code(), Code::NotFound);
  EXPECT_EQ(refused(module, dir_->path().string()).code(), Code::NotRegular);
  ASSERT_EQ(mkfifo(file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refused(module, file("fifo")).code(), Code::NotRegular);
  write_bytes(file("empty"), "");
  EXPECT_EQ(refused(module, file("empty")).code(), Code::Truncated);
  EXPECT_EQ(refused(module, file("script.py")).code(), Code::UnknownFormat);
  EXPECT_EQ(error_of([&] { load_tensors(file("none")); }).function(), "load_tensors");
}

}  // namespace
}  // namespace posenc::testing
