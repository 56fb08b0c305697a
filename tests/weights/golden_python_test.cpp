// tools/golden.py saves what real PyTorch computes, and Golden compares it with C++ modules.

#include <gtest/gtest.h>

#include <torch/fft.h>
#include <torch/nn/module.h>

#include <cmath>

#include "posenc/positions/nn/token_embedding.h"
#include "posenc/transformer/layers/transformer_encoder_layer.h"
#include "posenc/weights/golden.h"
#include "support/python.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

void save_golden_files(const TempDir& dir, const std::string& script) {
  ASSERT_TRUE(run_python(dir, R"(
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, ")" POSENC_SOURCE_DIR R"(/tools")
import torch
from torch import nn
from golden import save_golden
torch.manual_seed(1)
)" + script));
}

TEST(GoldenPython, TransformerEncoderLayerAgreesWithItsGradients) {
  const TempDir dir;
  save_golden_files(dir, R"(
layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
save_golden("layer.safetensors", layer, torch.randn(2, 5, 16), src_key_padding_mask=mask)
assert layer.training and layer.linear1.weight.grad is None, "the module of the user is as it was"
)");
  Golden golden(dir / "layer.safetensors");
  EXPECT_EQ(golden.metadata().at("module"), "TransformerEncoderLayer");
  EXPECT_EQ(golden.inputs().keys(), (std::vector<std::string>{"src", "src_key_padding_mask"}));
  TransformerEncoderLayer layer(TransformerLayerOptions(16, 2).d_ff(32));
  golden.load_into(layer);
  layer->eval();
  const auto mask = AttentionMask::key_padding_torch_nn(golden.input("src_key_padding_mask"));
  const auto output = layer->forward(golden.input("src"), mask);
  const auto tolerance = Tolerance().rtol_of_max(1e-5);
  const auto report = golden.compare(output, tolerance);
  EXPECT_TRUE(report.ok()) << report;
  const auto gradients = golden.compare_gradients(layer, output, tolerance);
  EXPECT_TRUE(gradients.ok()) << gradients;
  EXPECT_EQ(gradients.items.size(), 13u) << "12 parameters and an input";

  // Without the mask it is another module, of which no factor makes Python's.
  const auto unmasked = golden.compare(layer->forward(golden.input("src")), tolerance);
  EXPECT_FALSE(unmasked.ok());
  EXPECT_LACKS(unmasked.to_string(), "times");
}

TEST(GoldenPython, ForgottenScaleIsNamed) {
  const TempDir dir;
  save_golden_files(dir, R"(
class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 48)

    def forward(self, ids):
        return self.embedding(ids) * 48**0.5

save_golden("tokens.safetensors", Tokens(), torch.randint(20, (2, 7)))
)");
  Golden golden(dir / "tokens.safetensors");
  for (const bool scaled : {true, false}) {
    TokenEmbedding tokens(
        TokenEmbeddingOptions(20, 48).scale(scaled ? Scale::SqrtDim : Scale::None));
    golden.load_into(tokens);
    const auto output = tokens->forward(golden.input("ids"));
    const auto report = golden.compare(output);
    EXPECT_EQ(report.ok(), scaled) << report;
    EXPECT_EQ(golden.compare_gradients(tokens, output, Tolerance().rtol(1e-6)).ok(), scaled);
    if (!scaled) {
      EXPECT_CONTAINS(report.to_string(), "times 0.1443376 = 1 / sqrt(48), from the last");
    }
  }
}

TEST(GoldenPython, SavesWhatModulesOfTorchTakeAndReturn) {
  const TempDir dir;
  save_golden_files(dir, R"(
class Spectrum(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x)

save_golden("spectrum.safetensors", Spectrum(), torch.randn(2, 8))
sequence = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 5, 4), [5, 3], batch_first=True)
save_golden("lstm.safetensors", nn.LSTM(4, 3), sequence)
torch.set_default_device("meta")  # as "cuda"
cpu = dict(device="cpu")
save_golden("device.safetensors", nn.Linear(2, 1, **cpu), torch.ones(1, 2, **cpu))
try:
    save_golden("nothing.safetensors", type("Nothing", (nn.Module,), {"forward": lambda self: [None, 1.0]})())
    raise AssertionError("a file that Golden would refuse")
except TypeError as error:
    assert "[save_golden] Nothing must return tensors" in str(error), error
)");
  const Golden spectrum(dir / "spectrum.safetensors");
  const auto output = torch::fft_fft(spectrum.input("x"));
  EXPECT_TRUE(spectrum.compare(output).ok());
  torch::nn::Module none;
  for (const bool detached : {false, true}) {
    const auto imaginary = torch::imag(output);
    const auto again =
        torch::complex(torch::real(output), detached ? imaginary.detach() : imaginary);
    const auto report = spectrum.compare_gradients(none, again, Tolerance().rtol_of_max(1e-6));
    EXPECT_EQ(report.ok(), !detached) << report;
  }
  const Golden lstm(dir / "lstm.safetensors");
  EXPECT_EQ(lstm.inputs().keys(), (std::vector<std::string>{"input.0", "input.1"}));
  EXPECT_EQ(lstm.outputs().keys(), (std::vector<std::string>{"0.0", "0.1", "1.0", "1.1"}));
}

TEST(GoldenPython, SavesNestedInputsAndOutputsAsTheyWere) {
  const TempDir dir;
  save_golden_files(dir, R"(
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.unused = nn.Parameter(torch.ones(1))
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        self.tied = self.weight
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.dropout = nn.Dropout(0.5)

    def forward(self, images, *more, flags=None, none=None, number=2):
        self.calls += 1
        images[0].mul_(number)  # in place
        x = self.dropout(images[0] * self.weight + images[1] + more[0] + self.frozen)
        return {"x": x, "pair": (flags, x.t()), "none": none, "half": x.half()}

three = torch.arange(3.0)
save_golden("odd.safetensors", Odd(), [three, three.expand(2, 3)], torch.ones(1), flags=torch.tensor([True]), number=4)
with torch.no_grad():
    save_golden("no_gradients.safetensors", nn.Linear(2, 1), torch.ones(1, 2))
)");
  const auto file = load_safetensors(dir / "odd.safetensors").tensors;
  EXPECT_EQ(file["param.calls"].item<int64_t>(), 0) << "as before the forward";
  EXPECT_TRUE(file["in.images.0"].equal(torch::arange(3.0f))) << "as before the forward";
  EXPECT_TRUE(file.contains("param.tied") && file.contains("param.frozen"));
  EXPECT_TRUE(file["grad.param.tied"].equal(file["grad.param.weight"])) << "whichever C++ has";
  EXPECT_FALSE(file.contains("grad.param.unused") || file.contains("grad.param.frozen"));
  const Golden golden(dir / "odd.safetensors");
  EXPECT_EQ(golden.inputs().keys(),
            (std::vector<std::string>{"images.0", "images.1", "more.0", "flags"}));
  EXPECT_EQ(golden.outputs().keys(), (std::vector<std::string>{"x", "pair.0", "pair.1", "half"}));
  EXPECT_TRUE(golden.input("images.0").requires_grad());
  EXPECT_FALSE(golden.input("flags").requires_grad());
  const auto x =
      golden.input("images.0") * 4 + golden.input("images.1") + golden.input("more.0") + 1;
  EXPECT_TRUE(golden.compare({x, golden.input("flags"), x.t(), x.to(torch::kHalf)}).ok());
  EXPECT_TRUE(load_safetensors(dir / "no_gradients.safetensors").tensors.contains("out.output"));
}

}  // namespace
}  // namespace posenc::testing
