# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The trainers of transformers and Lightning with compressed activations."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from support import values

pytestmark = pytest.mark.host_only


class Dataset(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        x = torch.randn(256, generator=torch.Generator().manual_seed(i))
        return {"x": x, "labels": x[:64].argmax()}


class Stream(torch.utils.data.IterableDataset):
    """Three batches of 16, which the trainer cannot count."""

    def __iter__(self):
        data = Dataset()
        return (data[i] for i in range(48))


class Classifier(nn.Module):
    def __init__(self, breaks_at=None):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64))
        self.calls, self.breaks_at = 0, breaks_at

    def forward(self, x, labels):
        self.calls += 1
        if self.calls == self.breaks_at:
            raise ZeroDivisionError
        return {"loss": F.cross_entropy(self.layers(x), labels)}


def compresses():
    y = values(64, 64)
    return not torch.equal(y.sin().grad_fn._saved_self, y)


def test_trainer_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from furl_torch.hf import CompressSaved

    def train(model, callback, dataset=Dataset()):
        settings = transformers.TrainingArguments(
            str(tmp_path), per_device_train_batch_size=16, gradient_accumulation_steps=2, max_steps=3, report_to=[],
            use_cpu=True, save_strategy="no", disable_tqdm=True)
        trainer = transformers.Trainer(model=model, args=settings, train_dataset=dataset, callbacks=[callback])
        return trainer.train()

    with pytest.raises(ValueError, match="bits is 'auto': must be 1 to 8, since"):
        CompressSaved(bits="auto")
    callback = CompressSaved(bits=4)
    with pytest.raises(ZeroDivisionError):
        train(Classifier(breaks_at=2), callback)
    model = Classifier()
    before = model.layers[0].weight.clone()
    train(model, callback)
    assert model.calls == 6 and not torch.equal(model.layers[0].weight, before)
    assert not callback.context.is_on and not compresses()
    assert callback.context.stats().modules["layers.1"].num_tensors > 0
    assert callback.context.stats().compressed.ratio > 6
    train(Classifier(), callback, Stream())
    assert not callback.context.is_on and not compresses()


def test_trainer_of_lightning(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    from furl_torch.lightning import CompressSaved

    class Module(lightning.LightningModule):
        def __init__(self, breaks_at=None):
            super().__init__()
            self.model = Classifier(breaks_at)

        def on_train_batch_start(self, batch, batch_idx):
            return -1 if batch_idx == 2 else None  # ends the epoch

        def training_step(self, batch, batch_idx):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def train(module, callback):
        trainer = lightning.Trainer(max_steps=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
                                    default_root_dir=str(tmp_path))
        trainer.fit(module, torch.utils.data.DataLoader(Dataset(), batch_size=16))

    callback = CompressSaved(bits=4)
    with pytest.raises(ZeroDivisionError):
        train(Module(breaks_at=2), callback)
    assert not callback.context.is_on and not compresses()
    train(Module(), callback)
    assert not callback.context.is_on and not compresses()
    assert callback.context.stats().modules["model.layers.1"].num_tensors > 0
    assert callback.context.stats().compressed.ratio > 6


def test_the_package_imports_neither():
    code = "import sys, furl_torch; print(sorted({'transformers', 'lightning', 'peft'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
