// Modules created with a default dtype other than float32: the notebooks' tables as Python computes
// them with that dtype, and models that run and train.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/default_dtype.h"
#include "support/python.h"
#include "transformer/tiny.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

constexpr torch::ScalarType kTypes[] = {torch::kFloat, torch::kDouble, torch::kBFloat16,
                                        torch::kHalf};

std::string name_of(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kDouble: return "float64";
    case torch::kBFloat16: return "bfloat16";
    case torch::kHalf: return "float16";
    default: return "float32";
  }
}

TEST(DefaultDtypes, TablesHavePythonsBits) {
  ASSERT_TRUE(python_has("torch, safetensors.torch")) << POSENC_PYTHON;
  const TempDir dir;
  const std::string command = std::string("'") + POSENC_PYTHON + "' -B -W ignore '" +
                              POSENC_TESTS_DIR "/modules/default_dtype.py' '" POSENC_SOURCE_DIR
                                               "/notebooks_ref' '" +
                              dir.path().string() + "' > '" + (dir / "log") + "' 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_bytes(dir / "log");
  const auto theirs = load_safetensors(dir / "tables.safetensors").tensors;
  constexpr int64_t kWidth = 24, kLength = 700;
  for (const auto dtype : kTypes) {
    SCOPED_TRACE(dtype);
    const DefaultDtype guard(dtype);
    const auto table = [&](const char* slug) { return theirs[name_of(dtype) + "." + slug]; };
    const PositionalEncoding encoding(kWidth, kLength);
    EXPECT_TRUE(bit_equal(encoding->pe, table("input_embedding")));
    EXPECT_TRUE(bit_equal(encoding->pe, table("token_and_position_embedding")));
    const auto options = PositionEmbeddingOptions(kWidth).max_len(kLength);
    using RegisterAs = PositionEmbeddingOptions::RegisterAs;
    const PositionEmbedding buffer(
        PositionEmbeddingOptions(options).register_as(RegisterAs::Buffer));
    EXPECT_TRUE(bit_equal(buffer->pos_enc, table("position_embedding")));
    const PositionEmbedding frozen(options);
    const auto weight = frozen->embedding->weight.detach();
    if (dtype == torch::kFloat || dtype == torch::kDouble) {
      EXPECT_TRUE(bit_equal(weight, table("timestep_embedding")));
    } else {  // Python's half-precision positions have no 257 or 2,049
      EXPECT_TRUE(bit_equal(weight, theirs["float32.timestep_embedding"].to(dtype)));
    }
  }
}

// Converting to another dtype and back gives the float32 module's table, which also grows in that
// dtype.
TEST(DefaultDtypes, TablesAreConvertedAndGrowAsOthersDo) {
  for (const auto dtype : kTypes) {
    SCOPED_TRACE(dtype);
    PositionalEncoding plain(PositionalEncodingOptions(8, 4).grow(true)), made(nullptr);
    {
      const DefaultDtype guard(dtype);
      made = PositionalEncoding(PositionalEncodingOptions(8, 4).grow(true));
    }
    made->table(20), plain->table(20);
    EXPECT_TRUE(bit_equal(made->pe, plain->pe.to(dtype)));
    made->to(torch::kFloat);
    EXPECT_TRUE(bit_equal(made->pe, plain->pe));
  }
}

// Without a table, rows also have the default dtype, rounded like those of a table.
TEST(DefaultDtypes, RowsWithoutATableAreThoseOfTheTable) {
  for (const auto dtype : kTypes) {
    SCOPED_TRACE(dtype);
    const DefaultDtype guard(dtype);
    const auto x = torch::zeros({1, 9, 8});
    const auto sinusoid = SinusoidOptions(8).precision(Precision::Exact);
    const auto with = [&](posenc::TableSource source) {
      return PositionalEncoding(
                 PositionalEncodingOptions(8, 16).table_source(source).sinusoid(sinusoid))
          ->forward(x);
    };
    const auto expected = with(posenc::TableSource::Buffer);
    EXPECT_EQ(expected.scalar_type(), dtype);
    EXPECT_TRUE(bit_equal(with(posenc::TableSource::Factored), expected));
    EXPECT_TRUE(bit_equal(with(posenc::TableSource::OnTheFly), expected));
  }
}

TEST(DefaultDtypes, ATransformerRunsAndLearns) {
  const auto src = torch::tensor({{3, 4, 5, 0}, {6, 7, 0, 0}}),
             tgt = torch::tensor({{1, 4}, {1, 5}});
  for (const auto dtype : kTypes) {
    SCOPED_TRACE(dtype);
    Transformer made(nullptr);
    torch::Tensor out;
    {
      const DefaultDtype guard(dtype);
      made = tiny_model();
      out = made->forward(src, tgt, AttentionMask::padding(src, 0), AttentionMask::causal());
      out.sum().backward();
    }
    EXPECT_EQ(out.scalar_type(), dtype);
    auto converted = tiny_model();
    converted->to(dtype);
    load_state_dict(*converted, state_dict(*made));
    const auto expected =
        converted->forward(src, tgt, AttentionMask::padding(src, 0), AttentionMask::causal());
    EXPECT_TRUE(bit_equal(out.detach(), expected.detach()));
    for (const auto& item : made->named_parameters()) {
      EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
      EXPECT_EQ(item.value().grad().scalar_type(), dtype) << item.key();
    }
  }
}

}  // namespace
}  // namespace posenc::testing
