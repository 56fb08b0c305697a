#include "tagger.h"

#include <gtest/gtest.h>
#include <posenc/weights/golden.h>

// golden.safetensors has what Python's class computed: weights, inputs, outputs and gradients.
TEST(Tagger, ComputesWhatPythonComputes) {
  posenc::Golden golden("golden.safetensors");
  Tagger tagger;
  golden.load_into(*tagger, posenc::LoadOptions().key_map(tagger_keys()));
  tagger->eval();
  const auto logits = tagger->forward(golden.input("ids"), golden.input("mask"));

  const auto tolerance = posenc::Tolerance().rtol_of_max(1e-5);
  const auto report = golden.compare(logits, tolerance);
  EXPECT_TRUE(report.ok()) << report;
  const auto gradients = golden.compare_gradients(*tagger, logits, tolerance);
  EXPECT_TRUE(gradients.ok()) << gradients;
}
