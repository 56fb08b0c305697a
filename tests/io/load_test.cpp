// Both readers behind load_weights(): what is told apart, and TorchScript made by Python.
#include "posenc/io/load.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "io/python.h"
#include "io/support.h"
#include "posenc/io/safetensors.h"
#include "posenc/io/torchscript.h"

// LibTorch's reader throws from its constructor without closing an archive that it refuses.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT: the sanitizer's name
  return "leak:mz_zip_reader_init\n";
}

namespace posenc::testing {
namespace {

using Names = std::vector<std::string>;

struct Encoder : torch::nn::Module {
  Encoder() {
    embedding = register_module("embedding", torch::nn::Embedding(5, 4));
    projection = register_module("projection", torch::nn::Linear(4, 4));
    pe = register_buffer("pe", at::zeros({1, 3, 4}));
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear projection{nullptr};
  at::Tensor pe;
};

std::vector<std::string> all_bits(const torch::nn::Module& module) {
  std::vector<std::string> all;
  for (const auto& item : state_dict(module)) all.push_back(bits(item.value()));
  return all;
}

// Python writes each file once for all tests.
class Load : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    ASSERT_TRUE(run_python(*dir_, R"(
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.register_buffer("pe", torch.arange(12.).view(1, 3, 4))
        self.projection = nn.Linear(4, 4)
        self.register_buffer("scratch", torch.ones(2), persistent=False)
    def forward(self, ids):
        return self.projection(self.embedding(ids) + self.pe)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.output = nn.Linear(4, 5, bias=False)
        self.output.weight = self.embedding.weight
    def forward(self, ids):
        return self.output(self.embedding(ids))

ids = torch.zeros(2, 3, dtype=torch.long)
encoder = Encoder().eval()
torch.jit.save(torch.jit.script(encoder), "script.pt")
torch.jit.save(torch.jit.trace(encoder, ids), "trace.pt")
torch.jit.save(torch.jit.freeze(torch.jit.script(encoder)), "frozen.pt")
torch.jit.save(torch.jit.script(Tied()), "tied.pt")
torch.jit.save(torch.jit.script(nn.Embedding(5, 4)), "bare_script.pt")
torch.jit.save(torch.jit.trace(nn.Embedding(5, 4), ids), "bare_trace.pt")
torch.jit.save(torch.jit.script(nn.Sequential(nn.ReLU())), "no_weights.pt")
torch.jit.save(torch.jit.script(encoder.double()), "double.pt")
for value in (encoder.double(), encoder.float()):  # another type of one class: mangled
    torch.jit.save(torch.jit.trace(value, ids), "mangled.pt")
torch.save(encoder.state_dict(), "state.pt")
torch.save(encoder.state_dict(), "legacy.pt", _use_new_zipfile_serialization=False)
torch.export.save(torch.export.export(encoder, (ids,)), "export.pt2")
with open("weight.bin", "wb") as file:
    file.write(encoder.embedding.weight.detach().numpy().tobytes())
)"));
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string file(const std::string& name) { return *dir_ / name; }

  // The refusal of load_weights(), which leaves the module as it was.
  static std::string refused(const std::string& path, const LoadOptions& options = {}) {
    Encoder module;
    const auto before = all_bits(module);
    const auto message = refusal([&] { load_weights(module, path, options); });
    EXPECT_EQ(before, all_bits(module));
    EXPECT_CONTAINS(message, path);
    EXPECT_LT(message.size(), 1000u);
    return message;
  }

  static inline TempDir* dir_ = nullptr;
};

TEST_F(Load, TorchScriptHasPythonsOrderAndClass) {
  for (const char* name : {"script.pt", "trace.pt", "mangled.pt"}) {
    const auto script = load_torchscript(file(name));
    EXPECT_EQ(script.class_name, "Encoder") << name;
    EXPECT_EQ(names(script.tensors),
              (Names{"pe", "scratch", "embedding.weight", "projection.weight", "projection.bias"}))
        << name;
    EXPECT_EQ(script.buffers, (std::set<std::string>{"pe", "scratch"})) << name;
    EXPECT_EQ(bits(script.tensors["embedding.weight"]), read_bytes(file("weight.bin"))) << name;
  }
}

TEST_F(Load, ABareEmbeddingHasItsOwnName) {
  for (const char* name : {"bare_script.pt", "bare_trace.pt"}) {
    const auto script = load_torchscript(file(name));
    EXPECT_EQ(script.class_name, "Embedding") << name;
    EXPECT_EQ(names(script.tensors), Names{"weight"}) << name;
  }
}

TEST_F(Load, TiesOfTorchScriptStayTies) {
  const auto script = load_torchscript(file("tied.pt"));
  EXPECT_EQ(names(script.tensors), (Names{"embedding.weight", "output.weight"}));
  EXPECT_TRUE(script.tensors["embedding.weight"].is_alias_of(script.tensors["output.weight"]));
}

TEST_F(Load, WeightsOfTorchScript) {
  for (const char* name : {"script.pt", "trace.pt"}) {
    Encoder module;
    const auto report = load_weights(module, file(name));
    EXPECT_EQ(report.loaded.size(), 4u);
    EXPECT_EQ(report.missing, Names{});
    EXPECT_EQ(report.unexpected, Names{"scratch"});  // non-persistent: reported, no error
    EXPECT_EQ(bits(module.embedding->weight), read_bytes(file("weight.bin")));
    EXPECT_TRUE(at::equal(module.pe, at::arange(12, at::kFloat).view({1, 3, 4})));
  }
}

TEST_F(Load, WeightsOfSafetensorsUnderAnyFileName) {
  Encoder saved, loaded;
  save_safetensors(file("weights.pt"), state_dict(saved));
  EXPECT_EQ(load_weights(loaded, file("weights.pt")).loaded, names(state_dict(loaded)));
  EXPECT_EQ(all_bits(loaded), all_bits(saved));
}

TEST_F(Load, AnUnexpectedBufferOfSafetensorsIsAnError) {
  Encoder saved;
  saved.register_buffer("scratch", at::ones({2}));
  save_safetensors(file("scratch.safetensors"), state_dict(saved));
  const auto message = refused(file("scratch.safetensors"));
  EXPECT_CONTAINS(message, "[load_weights] " + file("scratch.safetensors") + " does not fit");
  EXPECT_CONTAINS(message, "unexpected (1): 'scratch'");
}

TEST_F(Load, RefusesWhatDoesNotFit) {
  EXPECT_CONTAINS(refused(file("double.pt")), "'pe' must have dtype Float. Got Double");
  const auto message = refused(file("tied.pt"));
  EXPECT_CONTAINS(message, "missing (3): 'pe'");
  EXPECT_CONTAINS(message, "unexpected (1): 'output.weight'");
  EXPECT_CONTAINS(refused(file("script.pt"), LoadOptions().prefix("model.")),
                  "no name begins with 'model.'");
}

TEST_F(Load, NamesForeignFormats) {
  EXPECT_CONTAINS(refused(file("state.pt")), "is a torch.save file, not TorchScript");
  EXPECT_CONTAINS(refused(file("legacy.pt")), "torch.save file in the form before PyTorch 1.6");
  EXPECT_CONTAINS(refused(file("export.pt2")), "is a .pt2 archive of torch.export");
  EXPECT_CONTAINS(refused(file("frozen.pt")), "is frozen (torch.jit.freeze)");
  EXPECT_CONTAINS(refused(file("script.py")), "is of an unknown format");
  write_bytes(file("gguf"), "GGUF\3\0\0\0" + std::string(100, '\0'));
  EXPECT_CONTAINS(refused(file("gguf")), "is a GGUF file");
  write_bytes(file("short"), "P");
  EXPECT_CONTAINS(refused(file("short")), "is of an unknown format");
  write_bytes(file("zip"), std::string("PK\5\6", 4) + std::string(18, '\0'));
  EXPECT_CONTAINS(refused(file("zip")), "is of an unknown format");
}

TEST_F(Load, AModuleWithoutWeightsIsNotFrozen) {
  EXPECT_TRUE(load_torchscript(file("no_weights.pt")).tensors.is_empty());
}

TEST_F(Load, RefusesATruncatedArchiveAtAnyLength) {
  const auto whole = read_bytes(file("script.pt"));
  for (std::size_t length = 4; length < whole.size(); length += 97) {
    write_bytes(file("cut"), whole.substr(0, length));
    EXPECT_CONTAINS(refused(file("cut")), "the zip archive is damaged") << length;
  }
}

TEST_F(Load, RefusesADamagedArchiveOrLoadsAll) {
  const auto whole = read_bytes(file("script.pt"));
  const auto directory = whole.find("PK\1\2");
  for (std::size_t at = directory; at < whole.size(); at += 3) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    write_bytes(file("bad"), bytes);
    Encoder module;
    const auto before = all_bits(module);
    try {
      load_weights(module, file("bad"));
    } catch (const WeightsError&) {
      EXPECT_EQ(before, all_bits(module));
    }
  }
}

TEST_F(Load, SaysInOneLineWhyTorchScriptCannotBeLoaded) {
  auto bytes = read_bytes(file("script.pt"));
  const auto code = bytes.find("code/__torch__.py");  // deflated; behind its name and padding
  for (std::size_t at = code + 70; at < code + 90; ++at) bytes[at] = static_cast<char>(~bytes[at]);
  write_bytes(file("code"), bytes);
  const auto message = refusal([&] { load_torchscript(file("code")); });
  EXPECT_CONTAINS(message, "[load_torchscript] " + file("code") + ": torch::jit::load refuses it:");
  EXPECT_LACKS(message, "\n");
  EXPECT_LT(message.size(), 400u);
}

TEST_F(Load, RefusesWhatIsNoFile) {
  EXPECT_CONTAINS(refused(file("none")), "cannot be opened: No such file or directory");
  EXPECT_CONTAINS(refused(dir_->path().string()), "Got a directory");
  ASSERT_EQ(mkfifo(file("fifo").c_str(), 0600), 0);
  EXPECT_CONTAINS(refused(file("fifo")), "Got a FIFO");
  write_bytes(file("empty"), "");
  EXPECT_CONTAINS(refused(file("empty")), "the file is empty");
  EXPECT_CONTAINS(refusal([&] { load_torchscript(file("none")); }), "[load_torchscript]");
  EXPECT_CONTAINS(refusal([&] { load_torchscript(file("empty")); }), "the file is empty");
  write_bytes(file("s"), crafted("{}"));
  EXPECT_CONTAINS(refusal([&] { load_torchscript(file("s")); }), "is a safetensors file");
}

}  // namespace
}  // namespace posenc::testing
