#include <torch/types.h>

#include "parity/program/runs.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"

namespace posenc::testing {
namespace {

const std::string kWrong =
    "/torchscript/wrong/token_and_position_embedding__TokenAndPositionEmbedding.script.pt";

std::string lookup_source(const std::string& factor = "") {
  return "def forward(self, x: Tensor) -> Tensor:\n"
         "    return torch.embedding(self.embedding.weight, x)" +
         factor + "\n";
}

class Verify : public InFolder {
 protected:
  // A script whose only key is embedding.weight.
  std::string tokens(const std::string& name, const std::string& factor,
                     const at::Tensor& weight = torch::randn({13, 12})) {
    save_script(file(name + ".pt"), name, dict({{"embedding.weight", weight}}),
                lookup_source(factor));
    return file(name + ".pt");
  }
};

TEST_F(Verify, EveryNotebookClassIsEqual) {
  for (const auto& path : script_files()) {
    const auto result = posenc_parity({"verify", path});
    EXPECT_EQ(result.status, 0) << path << "\n" << result.out << result.err;
    EXPECT_EQ(result.err, "") << path;
    EXPECT_PRED_FORMAT2(::testing::IsNotSubstring, "NO", result.out);
  }
}

TEST_F(Verify, SeveralFilesMakeOneTable) {
  auto command = script_files();
  const auto count = std::to_string(command.size());
  command.insert(command.begin(), "verify");
  const auto good = posenc_parity(command);
  EXPECT_EQ(good.status, 0) << good.out << good.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, count + " of " + count + " files equal", good.out);

  command.push_back(POSENC_FIXTURES_DIR + kWrong);
  command.push_back(file("absent.pt"));
  const auto bad = posenc_parity(command);
  EXPECT_EQ(bad.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "absent.pt", bad.err);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                      count + " of " + std::to_string(command.size() - 1) + " files equal",
                      bad.out);
}

TEST_F(Verify, AMissingScaleIsFound) {
  for (const std::string folder : {POSENC_FIXTURES_DIR, POSENC_LIVE_DIR}) {
    const auto result = posenc_parity({"verify", folder + kWrong});
    EXPECT_EQ(result.status, 1) << result.out << result.err;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "NOT equal", result.out);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "does not multiply tokens: --param scale=none",
                        result.out);
  }
  const auto unscaled = tokens("TransformerEmbedding", "");
  EXPECT_EQ(posenc_parity({"verify", unscaled}).status, 1);
  EXPECT_EQ(posenc_parity({"verify", unscaled, "--param", "scale=none"}).status, 0);
  const auto scaled = tokens("TokenEmbedding", " * 2.5");
  const auto fitted = posenc_parity({"verify", scaled});
  EXPECT_EQ(fitted.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "multiplies tokens by 2.5: --param scale=2.5",
                      fitted.out);
  EXPECT_EQ(posenc_parity({"verify", scaled, "--param", "scale=2.5"}).status, 0);
}

// A scaled class in Python, and one in C++ that does not scale by default.
TEST_F(Verify, NamesTheScaleOfTheFilesClass) {
  const auto path = tokens("TokenEmbedding", " * (12 ** 0.5)");
  const std::string message =
      "the file's class multiplies tokens by sqrt(d_model): --param "
      "scale=sqrt_dim, in C++ .scale(posenc::Scale::SqrtDim)";
  for (const std::string given : {"", "scale=none", "scale=2.5"}) {
    std::vector<std::string> command = {"verify", path};
    if (!given.empty()) command.insert(command.end(), {"--param", given});
    const auto one = posenc_parity(command);
    EXPECT_EQ(one.status, 1);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "  hint: " + message + "\n", one.out);
  }
  const auto several = posenc_parity({"verify", path, path});
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, path + ": " + message, several.err);
  const auto good = posenc_parity({"verify", path, "--param", "scale=sqrt_dim"});
  EXPECT_EQ(good.status, 0) << good.out;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, ", scale=sqrt(d_model)", good.out);
  EXPECT_PRED_FORMAT2(::testing::IsNotSubstring, "hint:", good.out);
  // No scale explains another formula, and a class of positions has none.
  EXPECT_PRED_FORMAT2(::testing::IsNotSubstring, "hint:",
                      posenc_parity({"verify", tokens("TokenEmbedding", " * 2.0 + 1.0")}).out);
}

TEST_F(Verify, PrintsTheScaleOfTheCounterpart) {
  const auto path =
      std::string(POSENC_FIXTURES_DIR) + "/torchscript/input_embedding__InputEmbedding.script.pt";
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, ", scale=sqrt(d_model)",
                      posenc_parity({"verify", path, "--param", "scale=sqrt_dim"}).out);
}

TEST_F(Verify, OneBitIsADifference) {
  // This script changes the last bit of only one row, which random inputs alone might miss.
  save_script(file("bit.pt"), "TokenEmbedding", dict({{"embedding.weight", torch::ones({300, 4})}}),
              "def forward(self, x: Tensor) -> Tensor:\n"
              "    y = torch.embedding(self.embedding.weight, x)\n"
              "    return y + (x == 287).unsqueeze(-1).to(y.dtype) * 1.2e-7\n");
  const auto result = posenc_parity({"verify", file("bit.pt")});
  EXPECT_EQ(result.status, 1) << result.out;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "every id", result.out);
}

TEST_F(Verify, TypesAreKept) {
  for (const auto type : {torch::kHalf, torch::kBFloat16, torch::kDouble}) {
    const auto path =
        tokens("TransformerEmbedding", " * 12 ** 0.5", torch::randn({9, 12}).to(type));
    const auto result = posenc_parity({"verify", path});
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    std::filesystem::remove(path);
  }
}

TEST_F(Verify, NamesTheNearestPresetOfAnotherTable) {
  auto table = sinusoid_table(preset("notebook_004", 8), 20);
  const auto script = [&](const std::string& name) {
    save_script(file(name), "MyPositionEncoding", dict({{"pos_enc", table}}),
                "def forward(self, x: Tensor) -> Tensor:\n    return self.pos_enc[x]\n");
    return posenc_parity({"verify", file(name)});
  };
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "notebook_004", script("same.pt").out);
  table[3][0] += 0.25;
  const auto result = script("other.pt");
  EXPECT_EQ(result.status, 0) << result.out << result.err;  // the modules themselves are equal
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "max abs 0.25", result.out);
}

TEST_F(Verify, TakesEitherOrderOfImageAndTimestep) {
  const auto weights = dict({{"pe.embedding.weight", torch::randn({10, 6})},
                             {"pe_linear.0.weight", torch::randn({5, 6})},
                             {"pe_linear.0.bias", torch::randn({5})},
                             {"pe_linear.2.weight", torch::randn({2, 5})},
                             {"pe_linear.2.bias", torch::randn({2})}});
  // Attributes with numeric names are accessed with getattr, which TorchScript supports.
  const std::string body =
      "    r = torch.embedding(self.pe.embedding.weight, t)\n"
      "    a = getattr(self.pe_linear, \"0\")\n"
      "    b = getattr(self.pe_linear, \"2\")\n"
      "    r = torch.linear(torch.relu(torch.linear(r, a.weight, a.bias)), b.weight, b.bias)\n"
      "    return image + r.reshape([t.size(0), -1, 1, 1])\n";
  for (const std::string order : {"image: Tensor, t: Tensor", "t: Tensor, image: Tensor"}) {
    save_script(file("t.pt"), "Steps", weights,
                "def forward(self, " + order + ") -> Tensor:\n" + body);
    const auto result = posenc_parity({"verify", file("t.pt")});
    EXPECT_EQ(result.status, 0) << result.out << result.err;
  }
}

TEST_F(Verify, APrefixNamesAPart) {
  save_script(file("whole.pt"), "Model",
              dict({{"embed.embedding.weight", torch::randn({5, 4})}, {"head", torch::randn({3})}}),
              "def forward(self, x: Tensor) -> Tensor:\n    return x\n");
  const auto none = posenc_parity({"verify", file("whole.pt"), "--prefix", "embd."});
  expect_parity_refused(none, "verify", "no name that begins with embd.");
  const auto headless = posenc_parity(
      {"verify", file("whole.pt"), "--prefix", "embed.", "--module", "TokenEmbedding"});
  expect_parity_refused(headless, "verify", "no method forward");
}

TEST_F(Verify, AsksForTheModuleWhereKeysAreAmbiguous) {
  const auto path = tokens("Mystery", "");
  const auto asked = posenc_parity({"verify", path});
  expect_parity_refused(asked, "verify", "--module NAME");
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "TransformerEmbedding", asked.err);
  EXPECT_EQ(posenc_parity({"verify", path, "--module", "TokenEmbedding"}).status, 0);
  EXPECT_EQ(posenc_parity({"verify", path, "--module", "PositionEmbedding"}).status, 0);
  EXPECT_EQ(posenc_parity({"verify", path, "--module", "TransformerEmbedding"}).status, 1);
  EXPECT_EQ(posenc_parity({"verify", path, "--module", "TokenEmbeding"}).status, 2);
  expect_parity_refused(posenc_parity({"verify", path, "--module", "MyPositionEncoding"}), "verify",
                        "`pos_enc`");
}

TEST_F(Verify, RefusesWhatDoesNotFit) {
  const auto path = tokens("TokenEmbedding", "");
  expect_parity_refused(posenc_parity({"verify", path, "--param", "padding_id=0"}), "verify",
                        "did you mean padding_idx?");
  expect_parity_refused(posenc_parity({"verify", path, "--param", "scale=much"}), "verify",
                        "none, sqrt_dim or a number. Got much");
  save_script(file("rank.pt"), "PositionalEncoding", dict({{"pe", torch::zeros({7, 1, 4})}}),
              "def forward(self, x: Tensor) -> Tensor:\n    return x\n");
  expect_parity_refused(posenc_parity({"verify", file("rank.pt")}), "verify",
                        "`pe` must be (1, max_len, d_model). Got (7, 1, 4)");
  save_script(file("two.pt"), "TokenEmbedding",
              dict({{"embedding.weight", torch::zeros({3, 4})}, {"more", torch::zeros({2})}}),
              lookup_source());
  expect_parity_refused(posenc_parity({"verify", file("two.pt")}), "verify", "more");
}

TEST_F(Verify, AFailingScriptIsNotEqual) {
  save_script(file("fails.pt"), "TokenEmbedding", dict({{"embedding.weight", torch::ones({3, 4})}}),
              "def forward(self, x: Tensor) -> Tensor:\n"
              "    return torch.embedding(self.embedding.weight, x + 100)\n");
  const auto result = posenc_parity({"verify", file("fails.pt")});
  EXPECT_EQ(result.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "the script failed: ", result.out);
}

}  // namespace
}  // namespace posenc::testing
