// Files as they are published, on the command line: tensors that cannot be read, and those that a
// model does not have.
#include <torch/types.h>

#include <algorithm>

#include "cli/program.h"
#include "cli/translate_program.h"
#include "models/encoder/tiny_folder.h"
#include "support/compare.h"
#include "support/python.h"

namespace posenc::testing {
namespace {

class PublishedFiles : public InFolder {
 protected:
  Result encode(const std::string& folder, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {
        "encode", folder,
        "--in",   safetensors("in.safetensors", dict({{"input_ids", torch::tensor({{2, 5, 7}})}})),
        "--out",  file("out")};
    command.insert(command.end(), more.begin(), more.end());
    return posenc(command);
  }
  bool is_written(const std::string& name) const {
    const auto all = names();
    return std::find(all.begin(), all.end(), name) != all.end();
  }
};

TEST_F(PublishedFiles, TensorsThatAreNotDenseAreRefusedByName) {
  ASSERT_TRUE(
      run_python(folder_,
                 "import torch, warnings\n"
                 "warnings.filterwarnings('ignore')\n"
                 "x = torch.ones(2, 2)\n"
                 "kinds = {'quantised': torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),\n"
                 "         'sparse': x.to_sparse(), 'nested': torch.nested.nested_tensor([x]),\n"
                 "         'meta': torch.empty(2, device='meta')}\n"
                 "for name, value in kinds.items():\n"
                 "    torch.save({'layer.weight': value, 'bias': x}, name + '.pt')\n"
                 "torch.save({'dtype': torch.qint8, 'bias': x}, 'dtype.pt')\n"));
  for (const std::string kind : {"quantised", "sparse", "nested", "meta"}) {
    for (const std::string out : {"out.safetensors", "out.pt"}) {
      SCOPED_TRACE(kind + out);
      const auto result = posenc({"convert", file(kind + ".pt"), file(out)});
      expect_refused(result, "convert",
                     "tensor 'layer.weight' cannot be read: it is a " + kind + " tensor");
      EXPECT_FALSE(is_written(out));
    }
    const auto listed = posenc({"inspect", file(kind + ".pt")});
    EXPECT_EQ(listed.status, 0);
    EXPECT_CONTAINS(listed.out, "layer.weight  a " + kind + " tensor");
  }
  EXPECT_EQ(posenc({"convert", file("dtype.pt"), file("dtype.safetensors")}).status, 0);
}

TEST_F(PublishedFiles, AQuantisedEncoderIsRefusedByItsFirstQuantisedTensor) {
  const auto folder = TinyFolder::bert();
  const std::string path = folder.write();
  ASSERT_TRUE(
      run_python(folder_,
                 "import os, torch, warnings\n"
                 "from safetensors.torch import load_file\n"
                 "warnings.filterwarnings('ignore')\n"
                 "file = '" +
                     path +
                     "/model.safetensors'\n"
                     "tensors = load_file(file)\n"
                     "os.remove(file)\n"
                     "name = 'encoder.layer.0.attention.self.query.'\n"
                     "weight, bias = tensors.pop(name + 'weight'), tensors.pop(name + 'bias')\n"
                     "packed = torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8)\n"
                     "tensors[name + '_packed_params._packed_params'] = (packed, bias)\n"
                     "tensors = {'bert.' + key: value for key, value in tensors.items()}\n"
                     "torch.save(tensors, '" +
                     path + "/pytorch_model.bin')\n"));
  const auto result = encode(path);
  expect_refused(result, "encode",
                 "is not in the file, where 'bert.encoder.layer.0.attention.self.query."
                 "_packed_params._packed_params.0' must be a dense tensor. Got a quantised tensor");
  EXPECT_FALSE(is_written("out"));
}

TEST_F(PublishedFiles, TensorsThatTheModelLacksAreNamedOnOneLine) {
  auto folder = TinyFolder::bert();
  folder.add("embeddings.position_ids", {9});
  folder.add("cls.predictions.bias", {11});
  EXPECT_EQ(encode(folder.write()).err, "");
  folder.add("crf.transitions", {2});
  folder.add("encoder.adapter.weight", {2});
  const auto named = encode(folder.write());
  EXPECT_EQ(named.status, 0);
  EXPECT_EQ(named.err,
            "posenc encode: skipped tensors that the model does not have: crf.transitions, "
            "encoder.adapter.weight\n");
  folder.add("encoder.layer.0.output.dense.scale", {8});
  const auto refused = encode(folder.write());
  expect_refused(refused, "encode", "'encoder.layer.0.output.dense.scale'");
  EXPECT_EQ(encode(folder.write(), {"--allow-unexpected"}).status, 0);
}

TEST_F(PublishedFiles, ANameOnTheHubIsNoFolder) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"encode", "owner/model", "--text", text_file("t", "a\n"), "--out",
                                 file("out")},
        {"classify", "owner/model", "--text", text_file("t", "a\n")},
        {"tokenize", "owner/model", text_file("t", "a\n")}}) {
    SCOPED_TRACE(command.front());
    expect_refused(posenc(command), command.front(), "must be a folder on this machine");
    EXPECT_CONTAINS(posenc(command).err, "`hf download owner/model --local-dir model`");
  }
}

// As sentence-transformers warns.
TEST_F(PublishedFiles, AFolderWithoutModulesIsSaidToBeAveraged) {
  const auto result = posenc({"encode", std::string(POSENC_LIVE_DIR "/encoder/bert"), "--text",
                              text_file("t", "a\nb\n"), "--out", file("out")});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "posenc encode: " POSENC_LIVE_DIR
                        "/encoder/bert has no modules.json of sentence-transformers: a vector is "
                        "the mean of the tokens' last hidden states, or of a causal language model "
                        "the last of them\n");
}

// The command that notices it has said so.
TEST_F(Translate, AFullDiskIsNoticedOnce) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const std::string program = POSENC_CLI;
  const auto result = run_program({"/bin/sh", "-c",
                                   program + " translate --model " + marian_path("shared") + " " +
                                       text_file("lines", "six\n") + " >/dev/full"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "posenc translate: the output could not be written\n");
}

}  // namespace
}  // namespace posenc::testing
