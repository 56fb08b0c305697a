// Files with one entry that cannot be loaded: the others can be, and the error names that one.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "posenc/train/checkpoint.h"
#include "posenc/weights/load.h"
#include "posenc/weights/manifest.h"
#include "posenc/weights/safetensors.h"
#include "support/python.h"
#include "weights/files.h"
#include "weights/support.h"

namespace posenc::testing::partly_readable_test {
namespace {

using Code = WeightsErrorCode;

struct Holder : torch::nn::Module {
  explicit Holder(const std::vector<std::string>& names) {
    for (const auto& name : names) register_buffer(name, at::zeros({2}));
  }
};

class PartlyReadable : public ::testing::Test {
 protected:
  std::string code_of(const std::string& file, torch::nn::Module& module) {
    return refusal([&] { load_weights(module, dir_ / file); });
  }
  const TempDir dir_;
};

// Dtypes of less than a byte, in safetensors and in a torch.save file.
TEST_F(PartlyReadable, OnlyTheUnreadableTensorItselfIsRefused) {
  write_bytes(dir_ / "x.safetensors",
              crafted(R"({"w":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[8,11]},)"
                      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                      std::string(11, '\0')));
  ASSERT_TRUE(run_python(dir_,
                         "import torch\n"
                         "w = torch.zeros(2, dtype=torch.uint8).view(torch.bits1x8)\n"
                         "torch.save({'w': w, 'b': torch.zeros(2)}, 'x.pt')\n"));
  for (const char* file : {"x.safetensors", "x.pt"}) {
    Holder others({"b"}), all({"b", "w"});
    all.named_buffers()["b"].fill_(1);
    EXPECT_EQ(load_weights(others, dir_ / file).loaded, std::vector<std::string>{"b"});
    const auto text = code_of(file, all);
    EXPECT_CONTAINS(text, "Unsupported: [load_weights] " + (dir_ / file) + ": ");
    EXPECT_CONTAINS(text, "'w' must be a dense tensor. Got a tensor that has");
    EXPECT_TRUE(all.named_buffers()["b"].eq(1).all().item<bool>());
    // A request for all tensors never returns only some of them.
    EXPECT_CONTAINS(refusal([&] { load_tensors(dir_ / file); }),
                    "Unsupported: [load_tensors] " + (dir_ / file) +
                        ": tensor 'w' cannot be read: it is a tensor that has");
  }
  EXPECT_CONTAINS(refusal([&] { load_safetensors(dir_ / "x.safetensors"); }), "tensor 'w'");
}

// The kinds of tensors without dense values, in both formats of torch.save, and beside a readable
// b.
constexpr const char* kNotDense =
    "import torch, warnings\n"
    "warnings.filterwarnings('ignore')\n"
    "class Marked(torch.Tensor): pass\n"
    "x = torch.ones(2, 2)\n"
    "kinds = {'quantised': torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),\n"
    "         'channels': torch.quantize_per_channel(x, torch.ones(2), torch.zeros(2), 0, "
    "torch.quint8),\n"
    "         'sparse': x.to_sparse(), 'csr': x.to_sparse_csr(), 'bsc': x.to_sparse_bsc((1, 1)),\n"
    "         'parameter': torch.nn.Parameter(x.to_sparse()),\n"
    "         'nested': torch.nested.nested_tensor([x, x[:1]]),\n"
    "         'jagged': torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged),\n"
    "         'meta': torch.empty(2, device='meta'), 'marked': x.as_subclass(Marked)}\n"
    "for name, value in kinds.items():\n"
    "    for old in (False, True):\n"
    "        torch.save({'w': value, 'b': torch.ones(2)}, f'{name}{old}.pt', "
    "_use_new_zipfile_serialization=not old)\n";

TEST_F(PartlyReadable, ATensorThatIsNotDenseIsRefusedByName) {
  ASSERT_TRUE(run_python(dir_, kNotDense));
  const std::pair<const char*, const char*> kinds[] = {
      {"quantised", "a quantised tensor"}, {"channels", "a quantised tensor"},
      {"sparse", "a sparse tensor"},       {"csr", "a sparse tensor"},
      {"bsc", "a sparse tensor"},          {"parameter", "a sparse tensor"},
      {"nested", "a nested tensor"},       {"jagged", "a nested tensor"},
      {"meta", "a meta tensor"},           {"marked", "a tensor of class __main__.Marked"}};
  for (const auto& [kind, text] : kinds) {
    for (const char* format : {"False.pt", "True.pt"}) {
      SCOPED_TRACE(kind + std::string(format));
      const std::string file = kind + std::string(format);
      const Manifest manifest = read_manifest(dir_ / file);
      ASSERT_EQ(manifest.opaque.size(), 1U);
      EXPECT_EQ(manifest.opaque[0].kind, EntryKind::Unreadable);
      EXPECT_CONTAINS(refusal([&] { load_tensors(dir_ / file); }),
                      "tensor 'w' cannot be read: it is " + std::string(text));
      Holder others({"b"}), all({"b", "w"});
      EXPECT_EQ(load_weights(others, dir_ / file).loaded, std::vector<std::string>{"b"});
      EXPECT_CONTAINS(code_of(file, all), "'w' must be a dense tensor. Got " + std::string(text));
    }
  }
}

// A quantised layer packs its weight and bias, and has its dtype beside them, which is no tensor.
TEST_F(PartlyReadable, AQuantisedLayerIsNamedWhereItsWeightIsMissing) {
  ASSERT_TRUE(
      run_python(dir_,
                 "import torch, warnings\n"
                 "warnings.filterwarnings('ignore')\n"
                 "model = torch.nn.Sequential(torch.nn.Linear(3, 2))\n"
                 "packed = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear})\n"
                 "torch.save(packed.state_dict(), 'x.pt')\n"
                 "torch.jit.script(packed).save('script.pt')\n"
                 "torch.save({'dtype': torch.qint8, 'b': torch.ones(2)}, 'dtype.pt')\n"));
  torch::nn::Sequential model(torch::nn::Linear(3, 2));
  const auto error = error_of([&] { load_weights(*model, dir_ / "x.pt"); });
  EXPECT_EQ(error.code(), Code::Unsupported);
  EXPECT_CONTAINS(
      error.what(),
      "'0._packed_params._packed_params.0' must be a dense tensor. Got a quantised tensor");
  EXPECT_CONTAINS(refusal([&] { load_tensors(dir_ / "script.pt"); }),
                  "cannot be read: it is tensors packed in an object of class "
                  "__torch__.torch.classes.quantized.LinearPackedParamsBase");
  EXPECT_EQ(load_tensors(dir_ / "dtype.pt").keys(), std::vector<std::string>{"b"});
  const Manifest manifest = read_manifest(dir_ / "dtype.pt");
  ASSERT_EQ(manifest.values.size(), 1U);
  EXPECT_EQ(manifest.values[0].text, "torch.qint8");
}

// Parts of tensors in a folder, as torch.distributed.checkpoint writes them.
TEST_F(PartlyReadable, AShardWithATensorThatCannotBeRead) {
  const std::string info = R"("__metadata__":{"DCP_SHARDING_INFO":"{\"b\":{\"saved_offsets\":[0]},)"
                           R"(\"w\":{\"saved_offsets\":[0]}}"},)";
  write_bytes(dir_ / "shard.safetensors",
              crafted("{" + info +
                          R"("w":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[8,11]},)"
                          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                      std::string(11, '\0')));
  Holder others({"b"}), all({"b", "w"});
  EXPECT_EQ(load_weights(others, dir_.path().string()).loaded, std::vector<std::string>{"b"});
  EXPECT_CONTAINS(refusal([&] { load_weights(all, dir_.path().string()); }),
                  "'w' must be a dense tensor. Got a tensor that has");
}

TEST_F(PartlyReadable, TwoTensorsOfOneNameAreNeitherTheOneNorTheOther) {
  ASSERT_TRUE(run_python(dir_,
                         "import torch\n"
                         "a, b = torch.ones(2), torch.zeros(2)\n"
                         "torch.save({'a.b': a, 'a': {'b': b}, 'c': b}, 'x.pt')\n"));
  Holder module({"c"});
  load_weights(module, dir_ / "x.pt");
  struct Inner : torch::nn::Module {
    Inner() { register_module("a", std::make_shared<Holder>(std::vector<std::string>{"b"})); }
  } inner;
  EXPECT_CONTAINS(
      refusal([&] { load_weights(inner, dir_ / "x.pt", LoadOptions().allow_unexpected(true)); }),
      "'a.b' must be a dense tensor. Got one of several tensors of this name");
}

TEST_F(PartlyReadable, AWholeModuleIsNamedWhereItsWeightsAreMissing) {
  ASSERT_TRUE(run_python(dir_,
                         "import torch\n"
                         "torch.save({'model': torch.nn.Linear(3, 2), 'epoch': 3}, 'x.pt')\n"));
  torch::nn::Linear linear(3, 2);
  for (const char* prefix : {"", "model."}) {
    const auto error =
        error_of([&] { load_weights(*linear, dir_ / "x.pt", LoadOptions().prefix(prefix)); });
    EXPECT_EQ(error.code(), Code::WholeModule);
    EXPECT_CONTAINS(error.what(), "missing (2):\n    'weight'");
    EXPECT_CONTAINS(error.what(),
                    "'model' must be a dense tensor. Got a whole module of class "
                    "torch.nn.modules.linear.Linear");
    EXPECT_CONTAINS(error.what(), "save model.state_dict() in place of the model");
  }
  load_weights(*linear, dir_ / "x.pt", LoadOptions().allow_missing(true));
}

constexpr const char* kSubclasses =
    "import collections, torch\n"
    "class StateDict(collections.OrderedDict): pass\n"
    "Pair = collections.namedtuple('Pair', 'weight bias')\n"
    "weight, bias = torch.ones(2, 3), torch.zeros(2)\n"
    "linear = torch.nn.Linear(3, 2)\n"
    "optimizer = torch.optim.Adam(linear.parameters())\n"
    "linear(torch.ones(1, 3)).sum().backward()\n"
    "optimizer.step()\n"
    "state = linear.state_dict()\n"
    "torch.save({'model': StateDict(weight=weight, bias=bias), 'epoch': 3}, 'dict.pt')\n"
    "torch.save(StateDict(weight=weight, bias=bias), 'root.pt')\n"
    "torch.save({'model': Pair(weight, bias), 'steps': bias}, 'tuple.pt')\n"
    "torch.save({'model': state, 'optimizer': optimizer}, 'optimizer.pt')\n";

TEST_F(PartlyReadable, ASubclassOfDictIsReadLikeADict) {
  ASSERT_TRUE(run_python(dir_, kSubclasses));
  for (const char* file : {"dict.pt", "root.pt"}) {
    torch::nn::Linear linear(3, 2);
    const bool is_root = file[0] == 'r';
    load_weights(*linear, dir_ / file, LoadOptions().prefix(is_root ? "" : "model."));
    EXPECT_TRUE(at::equal(linear->weight, at::ones({2, 3})));
    EXPECT_TRUE(at::equal(linear->bias, at::zeros({2})));
  }
}

TEST_F(PartlyReadable, AContainerOfAnotherClassIsNamedWhereItsWeightsAreMissing) {
  ASSERT_TRUE(run_python(dir_, kSubclasses));
  torch::nn::Linear linear(3, 2);
  for (const char* prefix : {"", "model."}) {
    const auto error = error_of([&] {
      load_weights(*linear, dir_ / "tuple.pt", LoadOptions().prefix(prefix).allow_unexpected(true));
    });
    EXPECT_EQ(error.code(), Code::WholeModule);
    EXPECT_CONTAINS(error.what(),
                    "tuple.pt: 'model' must be a dense tensor. Got a container of class "
                    "__main__.Pair with tensors inside; save its tensors in a dict");
    EXPECT_CONTAINS(error.what(), "missing (2):\n    'weight'");
  }
  const auto other =
      error_of([&] { load_weights(*linear, dir_ / "tuple.pt", LoadOptions().prefix("net.")); });
  EXPECT_CONTAINS(other.what(), "no name begins with 'net.'");
  EXPECT_LACKS(other.what(), "Pair");
  // A prefix explains the names better than the tensors of an optimiser do.
  const auto beside = error_of([&] { load_weights(*linear, dir_ / "optimizer.pt"); });
  EXPECT_EQ(beside.code(), Code::MissingKeys);
  EXPECT_EQ(beside.remedy(), "LoadOptions().prefix(\"model.\")");
}

// Names that collide in std::hash, which a StateDict uses: loading 40,000 took seconds.
TEST_F(PartlyReadable, NamesThatCollideAreRefused) {
  ASSERT_TRUE(
      run_python(dir_,
                 "import json, struct, sys\n"
                 "sys.path.insert(0, '" POSENC_TESTS_DIR "/weights/hostile')\n"
                 "import colliding\n"
                 "names = colliding.names()\n"
                 "one = {'dtype': 'U8', 'shape': [0], 'data_offsets': [0, 0]}\n"
                 "def write(path, names, **metadata):\n"
                 "    header = json.dumps({'__metadata__': metadata, **{n: one for n in names}})\n"
                 "    open(path, 'wb').write(struct.pack('<Q', len(header)) + header.encode())\n"
                 "write('x', names)\n"
                 "write('checkpoint', names, **{'posenc.checkpoint': '1'})\n"
                 "write('plain', [f'layers.{i}.weight' for i in range(40_000)])\n"));
  const auto first = read_manifest(dir_ / "x").tensors;
  if (std::hash<std::string>()(first[0].name) != std::hash<std::string>()(first[1].name)) {
    GTEST_SKIP() << "another std::hash than that of libstdc++";
  }
  EXPECT_CONTAINS(refusal([&] { load_tensors(dir_ / "x"); }),
                  "LimitExceeded: [load_tensors] " + (dir_ / "x") + ": has names that were chosen");
  Holder module({});
  const auto error = error_of([&] { load_checkpoint(dir_ / "checkpoint", {module}); });
  EXPECT_EQ(error.code(), Code::LimitExceeded);
  EXPECT_EQ(load_tensors(dir_ / "plain").size(), 40'000u);
}

}  // namespace
}  // namespace posenc::testing::partly_readable_test
